// Gives KV pages their memory before a step writes them. The first write to a huge page waits until the system has
// found and cleared it: 0.1 ms, in a virtual machine that never used it up to 5 ms, in the middle of a step.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "decode/kv_cache.h"

namespace hearth::decode {

// A thread of its own that works while the engine does not: a core taken from a step costs as much as the step's own
// wait.
class PageWarmer {
 public:
  // ahead_bytes: of each group, beyond the highest page that was ever taken. cache and storage outlive it. Made and
  // ended on the thread that owns the cache.
  PageWarmer(KvCache& cache, graph::KvStorage& storage, int64_t ahead_bytes);
  ~PageWarmer();
  PageWarmer(const PageWarmer&) = delete;
  PageWarmer& operator=(const PageWarmer&) = delete;

  // Whether steps follow each other; at first they do. Any thread.
  void set_busy(bool busy);

 private:
  struct Group {
    std::atomic<int32_t> used{0};  // pages that were ever taken
    int32_t warm = 0;              // pages that have memory; the thread's own
    int32_t ahead = 0, total = 0;
  };
  void run(std::stop_token stop);
  bool warm_one();
  void wake();

  KvCache& cache_;
  graph::KvStorage& storage_;
  const size_t groups_n_;
  std::unique_ptr<Group[]> groups_;
  std::atomic<bool> busy_{true};
  std::atomic<uint32_t> changes_{0};
  std::jthread thread_;
};

}  // namespace hearth::decode
