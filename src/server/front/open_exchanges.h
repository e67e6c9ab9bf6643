// Answers under way, by whose they are: so that a key that is taken back ends what was begun with it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "net/exchange.h"

namespace hearth::server {

// Thread-safe. Holds no answer alive.
class OpenExchanges {
 public:
  void add(const std::string& owner, const std::shared_ptr<net::Exchange>& exchange);
  void cut(const std::function<bool(const std::string& owner)>& whose);

 private:
  std::mutex mutex_;
  std::multimap<std::string, std::weak_ptr<net::Exchange>> open_;
  size_t swept_ = 0;  // how many there were after those that have ended were last dropped
};

}  // namespace hearth::server
