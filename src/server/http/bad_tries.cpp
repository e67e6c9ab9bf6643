#include "server/http/bad_tries.h"

#include <algorithm>

namespace hearth::server {

std::chrono::milliseconds BadTries::add(const std::string& peer, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!peers_.contains(peer) && peers_.size() >= kPeersMax)
    peers_.erase(std::min_element(peers_.begin(), peers_.end(),
                                  [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
  Peer& p = peers_[peer];
  if (p.count > 0 && now - p.last >= kForgotten) p = {};
  p.last = now;
  if (++p.count <= kFree) return std::chrono::milliseconds(0);
  p.answered = std::clamp<Clock::time_point>(p.answered + kCost, now + kCost, now + kCostMax);
  return std::chrono::duration_cast<std::chrono::milliseconds>(p.answered - now);
}

}  // namespace hearth::server
