// The chat of `hearth run` with a scripted model, for tests with a terminal: answers "echo: <question>" letter by
// letter, slowly enough to be interrupted when the question is "slow". argv[1]: history file.
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "base/interrupt.h"
#include "cli/chat.h"
#include "cli/history.h"
#include "cli/line_source.h"

namespace hearth {
namespace {

class Echo : public cli::ChatBackend {
 public:
  std::string model_name() const override { return "test/echo"; }
  cli::ChatReply reply(std::span<const cli::ChatMessage> messages, const std::function<void(std::string_view)>& on_text,
                       const std::atomic<bool>& cancel) override {
    const std::string& question = messages.back().content;
    const std::string answer = question == "slow" ? std::string(2000, '.') : "echo: " + question;
    cli::ChatReply reply{.text = "", .finish_reason = "stop", .stats = {}};
    for (const char c : answer) {
      if (cancel) {
        reply.finish_reason = "cancelled";
        break;
      }
      reply.text += c;
      on_text({&c, 1});
      if (question == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return reply;
  }
  std::vector<cli::ChatSetting> settings() const override { return {}; }
  void set(const std::string&, const std::string&) override {}
};

int run(const char* history_file) {
  cli::History history = history_file ? cli::History(history_file) : cli::History();
  std::unique_ptr<cli::LineSource> lines;
  if (::isatty(STDIN_FILENO)) lines = std::make_unique<cli::TerminalLines>(STDIN_FILENO, STDOUT_FILENO, history);
  else lines = std::make_unique<cli::PlainLines>(STDIN_FILENO);
  Echo echo;
  Interrupt interrupt;
  const auto print = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  cli::Chat chat(echo, *lines, interrupt,
                 {.answer = print,
                  .note = [&](std::string_view line) { print("[" + std::string(line) + "]\n"); },
                  .error = [&](std::string_view line) { print("[" + std::string(line) + "]\n"); }},
                 hub::process_env());
  chat.run();
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::run(argc > 1 ? argv[1] : nullptr); }
