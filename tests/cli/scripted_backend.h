// A backend that plays answers: "/n/" waits for nothing, and an answer "<stop>" raises the interrupt in its middle.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/chat_backend.h"

namespace hearth::testing {

class ScriptedBackend : public cli::ChatBackend {
 public:
  std::deque<std::string>
      answers;  // by turn; "!words" fails with Error{invalid_argument, words}; "#..." ends by length
  std::function<void()> after_first_piece;  // called in the middle of an answer
  std::vector<std::vector<cli::ChatMessage>> asked;
  std::string temperature = "0";

  std::string model_name() const override { return "org/scripted"; }

  cli::ChatReply reply(std::span<const cli::ChatMessage> messages, const std::function<void(std::string_view)>& on_text,
                       const std::atomic<bool>& cancel) override {
    asked.emplace_back(messages.begin(), messages.end());
    if (answers.empty()) fail(ErrorKind::out_of_memory, "the prompt has 10 tokens, the context holds 5");
    const std::string answer = answers.front();
    answers.pop_front();
    if (answer.starts_with('#'))
      return {.text = answer, .finish_reason = "length", .context_full = answer == "#full", .stats = {}};
    if (answer.starts_with('!')) fail(ErrorKind::invalid_argument, "{}", answer.substr(1));
    cli::ChatReply reply{.text = "", .finish_reason = "stop", .stats = {.prompt_tokens = 7, .generated_tokens = 3}};
    for (const char c : answer) {
      if (cancel) {
        reply.finish_reason = "cancelled";
        break;
      }
      reply.text += c;
      on_text({&c, 1});
      if (after_first_piece && reply.text.size() == 1) after_first_piece();
    }
    return reply;
  }

  std::vector<cli::ChatSetting> settings() const override {
    return {{"temperature", temperature, "0 is greedy"}, {"max-tokens", "256", "longest answer"}};
  }
  void set(const std::string& name, const std::string& value) override {
    if (value == "hot") fail(ErrorKind::invalid_argument, "{} is 'hot': it must be a number", name);
    if (name == "temperature") temperature = value;
  }
};

}  // namespace hearth::testing
