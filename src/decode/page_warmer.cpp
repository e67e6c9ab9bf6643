#include "decode/page_warmer.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace hearth::decode {

PageWarmer::PageWarmer(KvCache& cache, graph::KvStorage& storage, int64_t ahead_bytes)
    : cache_(cache),
      storage_(storage),
      groups_n_(cache.groups().size()),
      groups_(std::make_unique<Group[]>(groups_n_)) {
  for (size_t g = 0; g < groups_n_; ++g) {
    const int64_t page_bytes = std::max<int64_t>(1, graph::kv_page_bytes(cache.groups()[g]));
    groups_[g].total = static_cast<int32_t>(cache.pages_total(g));
    groups_[g].ahead = static_cast<int32_t>((ahead_bytes + page_bytes - 1) / page_bytes);
  }
  cache_.on_first_use(
      [this](size_t group, int32_t page) { groups_[group].used.store(page + 1, std::memory_order_relaxed); });
  thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

PageWarmer::~PageWarmer() {
  cache_.on_first_use({});
  thread_.request_stop();
  wake();
}

void PageWarmer::wake() {
  changes_.fetch_add(1, std::memory_order_release);
  changes_.notify_one();
}

void PageWarmer::set_busy(bool busy) {
  if (busy_.exchange(busy) != busy && !busy) wake();
}

// One page in front of those in use; false: none lacks its memory, or it is not the time.
bool PageWarmer::warm_one() {
  if (busy_) return false;
  for (size_t g = 0; g < groups_n_; ++g) {
    Group& group = groups_[g];
    const int32_t used = group.used.load(std::memory_order_relaxed);
    group.warm = std::max(group.warm, used);
    if (group.warm >= std::min<int64_t>(group.total, int64_t{used} + group.ahead)) continue;
    storage_.populate(static_cast<int32_t>(g), group.warm++);
    return true;
  }
  return false;
}

void PageWarmer::run(std::stop_token stop) {
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);  // refused: it runs as any thread does
  while (!stop.stop_requested()) {
    const uint32_t seen = changes_.load(std::memory_order_acquire);
    if (!warm_one() && !stop.stop_requested()) changes_.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace hearth::decode
