// Tickets for WebSockets (spec web 10): browsers cannot send a credential with them, so a page fetches a ticket with
// its credential and says it in the first frame. Each is good once, for 30 s, and stands for the credential that asked.
#pragma once
#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"

namespace hearth::server {

// Thread-safe. What is kept of a ticket is its digest.
class Tickets {
 public:
  static constexpr auto kLife = std::chrono::seconds(30);
  static constexpr size_t kMost = 1024;  // then the oldest goes

  struct Bearer {
    std::string holder, owner;  // Auth::holder, Auth::owner
  };

  explicit Tickets(const Clock& clock) : clock_(clock) {}

  std::string issue(Bearer bearer);
  // Whose it is; afterwards it is nobody's. Nothing: it was never given out, was used, or is too old.
  std::optional<Bearer> take(const std::string& ticket);

 private:
  struct Issued {
    std::string digest;
    Bearer bearer;
    std::chrono::nanoseconds at{};
  };
  void drop_expired();

  const Clock& clock_;
  std::mutex mutex_;
  std::list<Issued> issued_;  // the oldest first
};

}  // namespace hearth::server
