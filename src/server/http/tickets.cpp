#include "server/http/tickets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/random.h"

namespace hearth::server {

void Tickets::drop_expired() {
  while (!issued_.empty() && clock_.monotonic() - issued_.front().at > kLife) issued_.pop_front();
}

std::string Tickets::issue(Bearer bearer) {
  std::string ticket;
  for (int i = 0; i < 4; ++i) ticket += fmt::format("{:016x}", entropy64());
  const std::lock_guard lock(mutex_);
  drop_expired();
  if (issued_.size() >= kMost) issued_.pop_front();
  issued_.push_back({sha256_hex(ticket), std::move(bearer), clock_.monotonic()});
  return ticket;
}

std::optional<Tickets::Bearer> Tickets::take(const std::string& ticket) {
  const std::string digest = sha256_hex(ticket);
  const std::lock_guard lock(mutex_);
  drop_expired();
  const auto found = std::ranges::find(issued_, digest, &Issued::digest);
  if (found == issued_.end()) return std::nullopt;
  Bearer bearer = std::move(found->bearer);
  issued_.erase(found);
  return bearer;
}

}  // namespace hearth::server
