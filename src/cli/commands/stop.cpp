#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/server_client.h"

namespace hearth::cli {
namespace {

constexpr Positional kPositionals[] = {
    {.name = "NAME", .help = "a model to unload; none: the server ends", .required = false},
};
constexpr int kEndMs = 35'000;  // a server drains for at most 30 s

int stop_server(Context& context) {
  const server::InstanceInfo instance = running_server(context);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, instance.pid, 0));
  if (pidfd < 0 || ::syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, nullptr, 0) != 0)
    fail(ErrorKind::io, "process {} cannot be told to end: {}", instance.pid, std::strerror(errno));
  pollfd end{.fd = pidfd, .events = POLLIN, .revents = 0};
  const int ended = ::poll(&end, 1, kEndMs);
  ::close(pidfd);
  if (ended != 1) fail(ErrorKind::io, "process {} has not ended after {} s", instance.pid, kEndMs / 1000);
  context.note("the server has ended");
  return 0;
}

int run(Context& context) {
  const auto name = context.args().positional("NAME");
  if (!name) return stop_server(context);
  json::Object body;
  body["model"] = *name;
  const json::Value document = ask_server(context, "POST", "/api/models/unload", body);
  if (context.json()) context.print_json(*document.object());
  else context.note("{} is unloaded when its requests have ended", *document.get("model")->string());
  return 0;
}

}  // namespace

const Command kStop = {
    .name = "stop",
    .aliases = "",
    .summary = "unloads a model, or ends the server",
    .details = "",
    .positionals = kPositionals,
    .flags = {},
    .run = run,
};

}  // namespace hearth::cli
