// Who holds which page: reference counts, windows, forks, and a random walk in which no page is lost.
#include "decode/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "decode/pages.h"
#include "support/scale.h"

namespace hearth::decode {
namespace {

void append(KvCache& cache, Sequence& s, int64_t n) {
  ASSERT_TRUE(cache.reserve(s, n));
  cache.commit(s, ids(n));
}

TEST(PagesNeeded, all_positions_or_what_a_window_sees) {
  EXPECT_EQ(pages_needed(group(0), 1, 8), 1);
  EXPECT_EQ(pages_needed(group(0), 65, 8), 2);
  EXPECT_EQ(pages_needed(group(128), 100000, 64), 3 + 2);
  EXPECT_EQ(pages_needed(group(128), 65, 64), 2);  // no more than there are positions
}

TEST(KvCache, takes_and_gives_back_pages) {
  Pages pages({4});
  const KvGroup groups[] = {group(0)};
  KvCache cache(groups, pages);
  EXPECT_EQ(cache.pages_total(0), 4);
  Sequence s = cache.make();
  append(cache, s, 64);
  EXPECT_EQ(cache.pages_free(0), 3);
  append(cache, s, 1);
  EXPECT_EQ(cache.pages_free(0), 2);
  cache.truncate(s, 64);
  EXPECT_EQ(cache.pages_free(0), 3);
  EXPECT_EQ(s.length(), 64);
  cache.free(s);
  EXPECT_EQ(cache.pages_free(0), 4);
  EXPECT_EQ(s.length(), 0);
  cache.free(s);  // a free sequence may be freed again
  EXPECT_EQ(cache.pages_free(0), 4);
}

TEST(KvCache, a_reserve_that_fails_changes_nothing) {
  Pages pages({4, 2});  // the second group runs dry first
  const KvGroup groups[] = {group(0), {{1}, 2, 64, 0, graph::KvFormat::bf16}};
  KvCache cache(groups, pages);
  Sequence s = cache.make();
  append(cache, s, 100);
  const Sequence before = s;
  EXPECT_FALSE(cache.reserve(s, 29));
  EXPECT_EQ(s.pages, before.pages);
  EXPECT_EQ(cache.pages_free(0), 2);
  EXPECT_EQ(cache.pages_free(1), 0);
  EXPECT_TRUE(cache.reserve(s, 28));
}

TEST(KvCache, forks_share_pages_and_copy_the_partly_filled_one) {
  Pages pages({5});
  const KvGroup groups[] = {group(0)};
  KvCache cache(groups, pages);
  Sequence a = cache.make();
  append(cache, a, 100);
  Sequence b = cache.fork(a);
  EXPECT_EQ(cache.pages_free(0), 3);
  EXPECT_EQ(b.pages, a.pages);
  append(cache, b, 1);
  ASSERT_EQ(pages.copies.size(), 1u);
  EXPECT_EQ(pages.copies[0].from, a.pages[0][1]);
  EXPECT_EQ(pages.copies[0].to, b.pages[0][1]);
  EXPECT_EQ(a.pages[0][0], b.pages[0][0]);
  EXPECT_NE(a.pages[0][1], b.pages[0][1]);
  EXPECT_EQ(cache.pages_free(0), 2);
  append(cache, a, 1);  // alone on its page now
  EXPECT_EQ(pages.copies.size(), 1u);
  cache.free(a);
  EXPECT_EQ(cache.pages_free(0), 3);  // the first page is b's too
  cache.free(b);
  EXPECT_EQ(cache.pages_free(0), 5);
}

TEST(KvCache, a_fork_at_a_page_border_copies_nothing) {
  Pages pages({4});
  const KvGroup groups[] = {group(0)};
  KvCache cache(groups, pages);
  Sequence a = cache.make();
  append(cache, a, 64);
  Sequence b = cache.fork(a);
  append(cache, b, 1);
  append(cache, a, 1);
  EXPECT_TRUE(pages.copies.empty());
  EXPECT_NE(a.pages[0][1], b.pages[0][1]);
}

TEST(KvCache, a_copy_on_write_counts_as_a_page) {
  Pages pages({2});
  const KvGroup groups[] = {group(0)};
  KvCache cache(groups, pages);
  Sequence a = cache.make();
  append(cache, a, 70);
  Sequence b = cache.fork(a);
  EXPECT_FALSE(cache.reserve(b, 1));
  EXPECT_TRUE(pages.copies.empty());
  cache.free(a);
  EXPECT_TRUE(cache.reserve(b, 1));
}

// A step that failed leaves pages behind the last position; they are no part of a fork.
TEST(KvCache, reserved_pages_are_not_shared) {
  Pages pages({8});
  const KvGroup groups[] = {group(0)};
  KvCache cache(groups, pages);
  Sequence a = cache.make();
  append(cache, a, 70);
  ASSERT_TRUE(cache.reserve(a, 100));  // three pages, nothing committed
  Sequence b = cache.fork(a);
  EXPECT_EQ(b.pages[0].size(), 2u);
  append(cache, b, 1);
  ASSERT_EQ(pages.copies.size(), 1u);
  EXPECT_NE(b.pages[0][1], a.pages[0][1]);
  cache.free(a);
  cache.free(b);
  EXPECT_EQ(cache.pages_free(0), 8);
}

TEST(KvCache, windows_give_back_what_lies_wholly_behind_when_its_room_is_needed) {
  Pages pages({8, 2});
  const KvGroup groups[] = {group(0), group(64)};
  KvCache cache(groups, pages);
  Sequence s = cache.make();
  append(cache, s, 126);
  EXPECT_FALSE(cache.reserve(s, 3));  // position 126 sees 63 on: page 0 is in use
  append(cache, s, 1);                // position 127 sees 64 on: page 0 is kept, though not needed
  EXPECT_EQ(cache.pages_free(1), 0);
  EXPECT_EQ(cache.reusable_length(s, 100), 100);
  append(cache, s, 2);
  EXPECT_EQ(s.pages[1], (std::vector<int32_t>{-1, s.pages[1][1], s.pages[1][2]}));
  EXPECT_EQ(cache.pages_free(0), 5);
}

TEST(KvCache, a_sequence_keeps_to_its_share_of_a_window_group) {
  Pages pages({32, 12});
  const KvGroup groups[] = {group(0), group(64)};
  KvCache cache(groups, pages, 3);
  Sequence s = cache.make();
  for (int i = 0; i < 8; ++i) {
    append(cache, s, 64);
    EXPECT_EQ(cache.pages_free(1), 12 - std::min(i + 1, 4));
  }
  EXPECT_EQ(std::count(s.pages[1].begin(), s.pages[1].end(), -1), 4);
  append(cache, s, 4 * 64);  // a step may need more than the share: all behind the window goes, nothing else
  EXPECT_EQ(std::count(s.pages[1].begin(), s.pages[1].end(), -1), 7);
}

TEST(KvCache, shared_pages_behind_a_window_make_no_room) {
  Pages pages({8, 3});
  const KvGroup groups[] = {group(0), group(64)};
  KvCache cache(groups, pages);
  Sequence a = cache.make();
  append(cache, a, 192);
  Sequence b = cache.fork(a);
  const Sequence before = b;
  EXPECT_FALSE(cache.reserve(b, 1));  // what b would give back a still holds
  EXPECT_EQ(b.pages, before.pages);
  cache.free(a);
  append(cache, b, 1);
  EXPECT_EQ(b.pages[1][0], -1);
  EXPECT_GE(b.pages[1][1], 0);
}

TEST(KvCache, reusable_length_needs_the_pages_of_the_window) {
  Pages pages({16, 3});
  const KvGroup groups[] = {group(0), group(64)};
  KvCache cache(groups, pages);
  Sequence s = cache.make();
  append(cache, s, 180);
  append(cache, s, 20);  // takes the place of page 0
  EXPECT_EQ(cache.reusable_length(s, 500), 200);
  EXPECT_EQ(cache.reusable_length(s, 195), 195);
  EXPECT_EQ(cache.reusable_length(s, 128), 128);
  EXPECT_EQ(cache.reusable_length(s, 127), 127);  // sees 64 on: page 1 is kept behind the window
  EXPECT_EQ(cache.reusable_length(s, 126), 0);    // sees 63, in a page that was given back
  EXPECT_EQ(cache.reusable_length(s, 10), 0);     // a shorter prefix sees older pages still
  EXPECT_EQ(cache.reusable_length(s, 0), 0);
  const KvGroup whole[] = {group(0)};
  Pages plain({4});
  KvCache other(whole, plain);
  Sequence t = other.make();
  append(other, t, 100);
  EXPECT_EQ(other.reusable_length(t, 37), 37);
}

// A walk over sequences that grow, shrink, fork and die. After each step every page is free, or held by as many
// sequences as its count says; and what a sequence reads is what it wrote.
TEST(KvCache, a_random_walk_loses_no_page) {
  for (uint32_t seed = 0; seed < test::scaled(20); ++seed) {
    std::mt19937 random(seed);
    const std::vector<int64_t> totals = {14, 10};
    Pages pages(totals);
    const KvGroup groups[] = {group(0), group(100)};
    KvCache cache(groups, pages, 1 + seed % 4);
    std::vector<Sequence> live;
    int32_t next_id = 0;
    for (int step = 0; step < 300; ++step) {
      const uint32_t action = random() % 10;
      if (live.empty() || (action == 0 && live.size() < 6)) {
        live.push_back(cache.make());
        continue;
      }
      const size_t at = random() % live.size();
      Sequence& s = live[at];
      if (action < 5) {
        const int64_t n = 1 + random() % 90;
        const int64_t free_before[] = {cache.pages_free(0), cache.pages_free(1)};
        if (cache.reserve(s, n)) {
          const std::vector<int32_t> list = ids(n, next_id);
          next_id += static_cast<int32_t>(n);
          for (int64_t i = 0; i < n; ++i)
            for (int32_t g = 0; g < 2; ++g) {
              const int64_t j = s.length() + i;
              std::vector<int32_t>& slots =
                  pages.content[{g, s.pages[static_cast<size_t>(g)][static_cast<size_t>(j / 64)]}];
              slots.resize(64);
              slots[static_cast<size_t>(j % 64)] = list[static_cast<size_t>(i)];
            }
          cache.commit(s, list);
        } else {
          EXPECT_EQ(cache.pages_free(0), free_before[0]);
          EXPECT_EQ(cache.pages_free(1), free_before[1]);
        }
      } else if (action < 7) {
        cache.truncate(s, cache.reusable_length(s, static_cast<int64_t>(random() % 200)));
      } else if (action < 8 && live.size() < 6) {
        live.push_back(cache.fork(s));
      } else if (action < 9) {
        cache.free(s);
        live.erase(live.begin() + static_cast<int64_t>(at));
      }
      for (size_t g = 0; g < 2; ++g) {
        std::vector<int> holders(static_cast<size_t>(totals[g]), 0);
        for (const Sequence& each : live) {
          ASSERT_EQ(static_cast<int64_t>(each.pages[g].size()), (each.length() + 63) / 64);
          const int64_t seen_from = g == 0 ? 0 : std::max<int64_t>(0, each.length() - 99);
          bool kept = false;  // pages are given back from the front on
          for (int64_t j = 0; j < each.length(); ++j) {
            const int32_t page = each.pages[g][static_cast<size_t>(j / 64)];
            if (j % 64 == 0 && page >= 0) ++holders[static_cast<size_t>(page)];
            kept |= page >= 0;
            if (!kept && j < seen_from) continue;
            ASSERT_GE(page, 0) << "seed " << seed << " step " << step;
            const std::vector<int32_t>& slots = pages.content[{static_cast<int32_t>(g), page}];
            ASSERT_EQ(slots[static_cast<size_t>(j % 64)], each.ids[static_cast<size_t>(j)])
                << "seed " << seed << " step " << step << " position " << j;
          }
        }
        const int64_t held = std::count_if(holders.begin(), holders.end(), [](int n) { return n > 0; });
        ASSERT_EQ(held + cache.pages_free(g), totals[g]) << "seed " << seed << " step " << step;
      }
    }
    for (Sequence& s : live) cache.free(s);
    EXPECT_EQ(cache.pages_free(0), totals[0]);
    EXPECT_EQ(cache.pages_free(1), totals[1]);
  }
}

}  // namespace
}  // namespace hearth::decode
