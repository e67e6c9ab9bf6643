#include "cli/detach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/fs.h"
#include "base/interrupt.h"
#include "cli/log_file.h"
#include "cli/programs.h"
#include "cli/server_client.h"
#include "net/listen.h"

namespace hearth::cli {
namespace {

constexpr auto kPause = std::chrono::milliseconds(50);

// Settings and the environment say the rest once more by themselves.
std::vector<std::string> words_again(const Context& context, const std::filesystem::path& log) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string(), "serve"};
  for (const auto& [name, value] : context.args().values())
    if (value.origin == Origin::command_line && name != "detach" && name != "log-file")
      for (const std::string& text : value.texts) words.push_back(fmt::format("--{}={}", name, text));
  words.push_back("--detach=false");
  words.push_back("--no-open=true");
  words.push_back("--log-file=" + log.string());
  if (const auto model = context.args().positional("MODEL")) {
    words.push_back("--");
    words.push_back(*model);
  }
  return words;
}

std::optional<int> end_of(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool answers(const server::InstanceInfo& instance) {
  try {
    return call_server(instance, "GET", "/ready", "", {}).status == 200;
  } catch (const Error&) {
    return false;  // not yet
  }
}

// What the file got behind that many bytes, as it is: it is our own words.
std::string written_since(const std::filesystem::path& file, uint64_t bytes) {
  const std::string all = io::real_fs().read_file(file, static_cast<size_t>(2 * kLogFileBytesMax));
  return all.size() > bytes ? all.substr(bytes) : "";
}

}  // namespace

int serve_detached(const Context& context) {
  const std::string given = context.args().text("log-file").value_or("");
  std::filesystem::path log =
      given.empty() ? hub::state_folder(context.env()) / "logs" / "serve.log" : hub::expand_home(given, context.env());
  log = std::filesystem::absolute(log);
  const net::Descriptor output(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (output.get() < 0) fail(ErrorKind::io, "/dev/null: {}", std::strerror(errno));
  log_to(log, output.get());
  const uint64_t before = std::filesystem::file_size(log);
  const Interrupt interrupt(Interrupt::Also::termination);
  const pid_t pid = start_program(words_again(context, log), output.get());
  const std::filesystem::path folder = hub::runtime_folder(context.env());
  for (;; std::this_thread::sleep_for(kPause)) {
    if (interrupt.requested()) {  // what does not answer yet is not left behind
      ::kill(pid, SIGTERM);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      fail(ErrorKind::cancelled, "interrupted: no server was started");
    }
    if (const std::optional<int> code = end_of(pid)) {
      std::fputs(written_since(log, before).c_str(), stderr);
      return *code == 0 ? exit_code(ErrorKind::cancelled) : *code;
    }
    const auto instance = server::find_instance(folder);
    if (!instance || instance->pid != pid || !answers(*instance)) continue;
    context.note("the server runs as process {}, its log is {}; hearth stop ends it", pid, log.string());
    context.print("{}\n", instance->url);
    return 0;
  }
}

}  // namespace hearth::cli
