#include "server/front/links.h"

#include <algorithm>

namespace hearth::server {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  // between two looks for links that have ended

}  // namespace

std::shared_ptr<WorkerLink> Links::start(const WorkerCommand& command, WorkerLink::Owner owner) {
  auto link = std::make_unique<WorkerLink>(command, std::move(owner));
  {
    const std::lock_guard count(graveyard_->mutex);
    ++graveyard_->living;
  }
  return {link.release(), [graveyard = graveyard_](WorkerLink* last) {
            const std::lock_guard bury(graveyard->mutex);
            graveyard->links.emplace_back(last);
            graveyard->filled.notify_all();
          }};
}

void Links::destroy_buried() {
  std::vector<std::unique_ptr<WorkerLink>> links;
  {
    const std::lock_guard lock(graveyard_->mutex);
    links.swap(graveyard_->links);
  }
  const auto count = static_cast<int64_t>(links.size());
  links.clear();
  const std::lock_guard lock(graveyard_->mutex);
  graveyard_->living -= count;
}

void Links::settle(std::chrono::milliseconds at_most) {
  for (const auto end = std::chrono::steady_clock::now() + at_most; std::chrono::steady_clock::now() < end;) {
    destroy_buried();
    std::unique_lock lock(graveyard_->mutex);
    if (graveyard_->living == 0) break;
    graveyard_->filled.wait_for(lock, kLook, [&] { return !graveyard_->links.empty(); });
  }
}

void Links::end(const std::vector<std::shared_ptr<WorkerLink>>& links, std::chrono::milliseconds at_most) {
  using std::chrono::milliseconds;
  const auto all_end = [&] {
    const auto deadline = std::chrono::steady_clock::now() + at_most;
    bool all = true;
    for (const auto& link : links) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
      all &= link->wait_end(std::max(milliseconds(0), left));
    }
    return all;
  };
  for (const auto& link : links) link->drain();
  if (all_end()) return;
  for (const auto& link : links)
    if (!link->wait_end(milliseconds(0))) link->kill();
  all_end();
}

}  // namespace hearth::server
