#include "cli/service_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/log.h"
#include "cli/units.h"
#include "net/listen.h"

namespace hearth::cli {

ServiceManager::ServiceManager(const hub::Env& env) : socket_(env("NOTIFY_SOCKET").value_or("")) {
  const auto every = parse_integer(env("WATCHDOG_USEC").value_or(""));
  const std::string pid = env("WATCHDOG_PID").value_or("");
  if (every && *every > 1 && (pid.empty() || pid == std::to_string(::getpid())))
    alive_every_ = std::chrono::microseconds(*every / 2);
}

void ServiceManager::ready(std::string_view status) const { send(fmt::format("READY=1\nSTATUS={}", status)); }

void ServiceManager::reloading() const {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(  // CLOCK_MONOTONIC
      std::chrono::steady_clock::now().time_since_epoch());
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.count()));
}

void ServiceManager::stopping() const { send("STOPPING=1"); }

void ServiceManager::alive() const { send("WATCHDOG=1"); }

void ServiceManager::send(const std::string& state) const {
  if (socket_.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof address.sun_path)
    return log::warn("serve", "NOTIFY_SOCKET has {} bytes, a socket's path has at most {}", socket_.size(),
                     sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const net::Descriptor fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  if (fd.get() < 0 || ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                               reinterpret_cast<const sockaddr*>(&address), length) < 0)
    log::warn("serve", "the service manager was not told {}: {}", state.substr(0, state.find('\n')),
              std::strerror(errno));
}

}  // namespace hearth::cli
