#include "server/front/links.h"

namespace hearth::server {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  // between two looks for links that have ended
constexpr auto kEnd = std::chrono::milliseconds(5'000);

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

void Links::end(const std::shared_ptr<WorkerLink>& link) {
  link->drain();
  if (link->wait_end(kEnd)) return;
  link->kill();
  link->wait_end(kEnd);
}

}  // namespace hearth::server
