#include "decode/page_warmer.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "pages.h"

namespace hearth::decode {
namespace {

// Notes which pages were made ready, and lets a test wait for as many as it expects.
class Noted final : public graph::KvStorage {
 public:
  explicit Noted(int64_t pages) : pages_(pages) {}
  int64_t pages(int32_t) const override { return pages_; }
  int64_t bytes() const override { return 0; }
  void copy_page(int32_t, int32_t, int32_t) override {}
  void read_page(int32_t, int32_t, std::span<std::byte>) const override {}
  void write_page(int32_t, int32_t, std::span<const std::byte>) override {}
  void populate(int32_t group, int32_t page) noexcept override {
    const std::lock_guard lock(mutex_);
    twice_ |= !ready_.emplace(group, page).second;
    changed_.notify_all();
  }

  std::set<std::pair<int32_t, int32_t>> after(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.size() >= count; });
    EXPECT_FALSE(twice_);
    return ready_;
  }

 private:
  const int64_t pages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<int32_t, int32_t>> ready_;
  bool twice_ = false;
};

TEST(PageWarmer, stays_ahead_of_the_highest_page_in_use) {
  const std::vector<KvGroup> groups = {group(0), group(0)};
  const int64_t page = graph::kv_page_bytes(groups[0]);
  Noted storage(20);
  KvCache cache(groups, storage);
  {
    PageWarmer warmer(cache, storage, 3 * page);
    warmer.set_busy(false);
    const std::set<std::pair<int32_t, int32_t>> first = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}};
    EXPECT_EQ(storage.after(6), first);
    Sequence s = cache.make();
    warmer.set_busy(true);
    ASSERT_TRUE(cache.reserve(s, 2 * graph::kPagePositions));  // pages 0 and 1 of both
    EXPECT_EQ(storage.after(6), first);
    warmer.set_busy(false);
    EXPECT_EQ(storage.after(10).rbegin()->second, 4);
    cache.free(s);
    Sequence again = cache.make();
    ASSERT_TRUE(cache.reserve(again, 2 * graph::kPagePositions));  // the same ones: nothing is new
    Sequence all = cache.make();
    ASSERT_TRUE(cache.reserve(all, 18 * graph::kPagePositions));  // to the end of the pool
  }
  // Taken pages got their memory by being written, the rest lay ahead of them; none twice.
  for (const auto& [g, p] : storage.after(10)) EXPECT_TRUE(g < 2 && p < 20);
}

TEST(PageWarmer, ends_where_nothing_ever_happens) {
  const std::vector<KvGroup> groups = {group(0)};
  Noted storage(2);
  KvCache cache(groups, storage);
  {
    PageWarmer warmer(cache, storage, int64_t{1} << 40);
    warmer.set_busy(false);
    storage.after(2);
  }
  Sequence s = cache.make();
  EXPECT_TRUE(cache.reserve(s, 1));  // the cache no longer calls it
}

}  // namespace
}  // namespace hearth::decode
