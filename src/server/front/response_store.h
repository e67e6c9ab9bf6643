// Responses that clients may come back to (spec server 52): kept in memory for an hour, 32 MiB in all, each for the
// credential that made it.
#pragma once
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "server/dialects/responses.h"

namespace hearth::server {

struct StoredResponse {
  json::Value document;                     // as the client got it: id, output, previous_response_id
  json::Array items;                        // its input
  std::optional<std::string> instructions;  // in force
};

struct ResponseStoreLimits {
  int64_t bytes_max = int64_t{32} << 20;     // of texts; the least recently used responses go
  std::chrono::milliseconds ttl{3'600'000};  // since the last use
};

// Thread-safe. A response is found under the owner that put it (Auth::owner) alone.
class ResponseStore {
 public:
  explicit ResponseStore(const Clock& clock, ResponseStoreLimits limits = {});

  // One that is larger than all may be is not kept.
  void put(const std::string& owner, const StoredResponse& response);
  std::optional<json::Value> find(const std::string& owner, const std::string& id);
  bool erase(const std::string& owner, const std::string& id);

  // What the response `id` and all before it said, oldest first. Throws Error{not_found} naming the response of the
  // chain that is not kept any more.
  responses::Past past(const std::string& owner, const std::string& id);

  int64_t entries();
  int64_t bytes();
  const ResponseStoreLimits& limits() const { return limits_; }

 private:
  using Key = std::pair<std::string, std::string>;  // owner, id
  struct Entry {
    Key key;
    std::string document, items;  // as text: a Value takes many times as much
    std::optional<std::string> instructions;
    std::string previous;
    std::chrono::nanoseconds used{};
    int64_t bytes() const;
  };
  using Order = std::list<Entry>;

  Entry* use(const Key& key);  // moves it to the front; null: not there
  void drop(Order::iterator entry);
  void drop_expired();

  const Clock& clock_;
  const ResponseStoreLimits limits_;
  std::mutex mutex_;
  Order order_;  // the last used one first
  std::map<Key, Order::iterator> entries_;
  int64_t bytes_ = 0;
};

}  // namespace hearth::server
