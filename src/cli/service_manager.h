// What a service manager is told of the server's state (sd_notify(3)): systemd, when the unit is Type=notify.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "hub/paths.h"

namespace hearth::cli {

// Any thread. Nothing happens where nobody listens: NOTIFY_SOCKET is not set.
class ServiceManager {
 public:
  explicit ServiceManager(const hub::Env& env);

  void ready(std::string_view status) const;  // also behind reloading()
  void reloading() const;
  void stopping() const;
  void alive() const;  // the watchdog's sign of life

  // How often alive() is wanted: half of WATCHDOG_USEC, if that is set and meant for this process.
  std::optional<std::chrono::microseconds> alive_every() const { return alive_every_; }

 private:
  void send(const std::string& state) const;

  std::string socket_;  // a path, or @ and an abstract name
  std::optional<std::chrono::microseconds> alive_every_;
};

}  // namespace hearth::cli
