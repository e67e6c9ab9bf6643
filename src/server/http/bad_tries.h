// What guessing keys costs (reliability.md R-09): from the eleventh wrong one of an address on, a second each, one
// after the other.
#pragma once
#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace hearth::server {

// Thread-safe.
class BadTries {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kFree = 10;
  static constexpr auto kCost = std::chrono::milliseconds(1'000), kCostMax = std::chrono::milliseconds(10'000);
  static constexpr auto kForgotten = std::chrono::seconds(60);  // without a further wrong key
  static constexpr size_t kPeersMax = 4096;                     // then the one that is silent for longest goes

  // One more wrong key of that address: how long its answer is held back. Tries at the same time queue up, at most
  // kCostMax.
  std::chrono::milliseconds add(const std::string& peer, Clock::time_point now);

 private:
  struct Peer {
    int count = 0;
    Clock::time_point last, answered;  // the latest try; when the last answer to one is due
  };
  std::mutex mutex_;
  std::map<std::string, Peer> peers_;
};

}  // namespace hearth::server
