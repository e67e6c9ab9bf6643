#include "server/front/open_exchanges.h"

#include <vector>

namespace hearth::server {

void OpenExchanges::add(const std::string& owner, const std::shared_ptr<net::Exchange>& exchange) {
  constexpr size_t kFew = 64;
  const std::lock_guard lock(mutex_);
  if (open_.size() >= 2 * swept_ + kFew) {
    std::erase_if(open_, [](const auto& one) { return one.second.expired(); });
    swept_ = open_.size();
  }
  open_.emplace(owner, exchange);
}

void OpenExchanges::cut(const std::function<bool(const std::string& owner)>& whose) {
  std::vector<std::shared_ptr<net::Exchange>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [owner, weak] : open_)
      if (whose(owner))
        if (auto exchange = weak.lock()) ended.push_back(std::move(exchange));
  }
  for (const auto& exchange : ended) exchange->abort();
}

}  // namespace hearth::server
