// The tree against a list of everything that was inserted; and pages that always hold what the ids say.
#include "decode/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "decode/pages.h"
#include "support/scale.h"

namespace hearth::decode {
namespace {

using graph::kPagePositions;
using Ids = std::vector<int32_t>;

// A cache whose pages remember what was written to them.
struct Fixture {
  explicit Fixture(std::vector<KvGroup> g, std::vector<int64_t> counts)
      : groups(std::move(g)), pages(std::move(counts)), cache(groups, pages), tree(cache, page_bytes(groups.size())) {}
  static std::span<const int64_t> page_bytes(size_t n) {
    static constexpr int64_t kBytes[] = {100, 10};
    return std::span(kBytes).first(n);
  }

  bool append(Sequence& s, std::span<const int32_t> more) {
    if (!cache.reserve(s, static_cast<int64_t>(more.size()))) return false;
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t i = 0; i < more.size(); ++i) {
        const int64_t at = s.length() + static_cast<int64_t>(i);
        const int32_t page = s.pages[g][static_cast<size_t>(at / kPagePositions)];
        Ids& content = pages.content[{static_cast<int32_t>(g), page}];
        content.resize(kPagePositions);
        content[static_cast<size_t>(at % kPagePositions)] = more[i];
      }
    cache.commit(s, more);
    return true;
  }
  Sequence of(const Ids& ids) {
    Sequence s = cache.make();
    const std::span<const int32_t> all = ids;
    for (size_t at = 0; at < all.size(); at += 64)
      EXPECT_TRUE(append(s, all.subspan(at, std::min<size_t>(64, all.size() - at))));
    return s;
  }
  void keep(const Ids& ids, std::string_view space = "") {
    Sequence s = of(ids);
    tree.insert(space, s);
    cache.free(s);
  }
  // Every page that the next position sees holds the ids of its positions.
  void expect_whole(const Sequence& s) const {
    for (size_t g = 0; g < groups.size(); ++g) {
      const int64_t window = groups[g].window;
      for (int64_t at = window > 0 ? std::max<int64_t>(0, s.length() - window + 1) : 0; at < s.length(); ++at) {
        const int32_t page = s.pages[g][static_cast<size_t>(at / kPagePositions)];
        ASSERT_GE(page, 0);
        ASSERT_EQ(pages.content.at({static_cast<int32_t>(g), page})[static_cast<size_t>(at % kPagePositions)],
                  s.ids[static_cast<size_t>(at)]);
      }
    }
  }
  int64_t taken(size_t g = 0) const { return cache.pages_total(g) - cache.pages_free(g); }

  std::vector<KvGroup> groups;
  Pages pages;
  KvCache cache;
  PrefixTree tree;
};

Ids counted(int64_t n, int32_t first = 0) { return ids(n, first); }
Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(PrefixTree, gives_back_the_longest_prefix_of_its_space) {
  Fixture f({group(0)}, {64});
  const Ids stem = counted(100);
  f.keep(joined(stem, counted(70, 1000)));
  f.keep(joined(stem, counted(30, 2000)));
  EXPECT_EQ(f.tree.entries(), 3);
  const auto length = [&](const Ids& ids, int64_t most = 1 << 20, std::string_view space = "") {
    return f.tree.match_length(space, ids, most);
  };
  EXPECT_EQ(length(joined(stem, counted(40, 2000))), 130);
  EXPECT_EQ(length(joined(stem, counted(40, 2000)), 129), 129);
  EXPECT_EQ(length(joined(stem, counted(5, 1000))), 105);
  EXPECT_EQ(length(joined(stem, counted(5, 3000))), 100);
  EXPECT_EQ(length(counted(7, 5)), 0);
  EXPECT_EQ(length(stem, 1 << 20, "another"), 0);
  Sequence s = f.tree.match("", joined(stem, counted(40, 2000)), 1000);
  EXPECT_EQ(s.length(), 130);
  f.expect_whole(s);
  ASSERT_TRUE(f.append(s, counted(10, 7)));  // on a page of its own
  f.expect_whole(s);
  f.keep(joined(joined(stem, counted(30, 2000)), counted(1, 9)));
  f.cache.free(s);
  f.tree.shrink(0);
  EXPECT_EQ(f.taken(), 0);
  EXPECT_EQ(f.tree.bytes(), 0);
}

TEST(PrefixTree, counts_the_bytes_it_refers_to) {
  Fixture f({group(0), group(128)}, {64, 64});
  f.keep(counted(130));
  EXPECT_EQ(f.tree.bytes(), 3 * 100 + 3 * 10);
  f.keep(joined(counted(130), counted(10, 500)));  // begins inside of a page: that one is its own
  EXPECT_EQ(f.tree.bytes(), 4 * 100 + 4 * 10);
  f.keep(joined(counted(64), counted(1, 900)));  // splits at a page's border: nothing is shared
  EXPECT_EQ(f.tree.bytes(), 5 * 100 + 5 * 10);
  f.keep(joined(counted(70), counted(1, 900)));  // splits inside of one: both halves reach into it, it counts once
  EXPECT_EQ(f.tree.bytes(), 6 * 100 + 6 * 10);
  EXPECT_EQ(f.taken(0), 6);
  EXPECT_EQ(f.taken(1), 6);
}

TEST(PrefixTree, gives_up_a_page_that_two_of_its_nodes_share) {
  Fixture f({group(0)}, {3});
  f.keep(counted(60));
  Sequence half = f.tree.match("", counted(60), 30);
  f.tree.insert("", half);  // the node is split inside of its only page
  f.cache.free(half);
  EXPECT_EQ(f.tree.entries(), 2);
  EXPECT_EQ(f.tree.bytes(), 100);
  EXPECT_TRUE(f.tree.make_room(0, 3));
  EXPECT_EQ(f.tree.bytes(), 0);
}

TEST(PrefixTree, a_window_needs_the_pages_that_the_next_position_sees) {
  Fixture f({group(0), group(100)}, {64, 4});
  Sequence s = f.of(counted(400));  // four pages do not hold 400 positions: the first are given back
  f.tree.insert("", s);
  EXPECT_EQ(f.tree.match_length("", counted(400), 400), 400);
  EXPECT_EQ(f.tree.match_length("", counted(400), 200), 0);
  f.cache.free(s);
  Sequence found = f.tree.match("", counted(400), 400);
  f.expect_whole(found);
  f.cache.free(found);
}

TEST(PrefixTree, takes_pages_that_it_lacks_from_a_later_request) {
  Fixture f({group(0), group(100)}, {64, 5});
  Sequence s = f.of(counted(400));
  f.tree.insert("", s);
  f.cache.free(s);
  EXPECT_TRUE(f.tree.make_room(1, 5));
  Sequence shorter = f.of(counted(150));
  f.tree.insert("", shorter);
  EXPECT_EQ(f.tree.match_length("", counted(400), 400), 150);
  f.cache.free(shorter);
}

TEST(PrefixTree, makes_room_by_what_was_used_longest_ago_and_frees_something) {
  Fixture f({group(0)}, {6});
  f.keep(counted(128, 0));
  f.keep(counted(128, 1000));
  Sequence used = f.tree.match("", counted(128, 0), 128);  // the older one was used since
  EXPECT_TRUE(f.tree.make_room(0, 3));
  EXPECT_EQ(f.tree.match_length("", counted(128, 1000), 128), 0);
  EXPECT_EQ(f.tree.match_length("", counted(128, 0), 128), 128);
  EXPECT_FALSE(f.tree.make_room(0, 5)) << "its pages are in use: giving it up frees none";
  EXPECT_EQ(f.tree.match_length("", counted(128, 0), 128), 128);
  f.cache.free(used);
  EXPECT_TRUE(f.tree.make_room(0, 5));
  EXPECT_EQ(f.tree.entries(), 0);
}

// The child's copy of the page in which it begins is in use; its parent's is not, and is nobody's but the tree's.
TEST(PrefixTree, gives_up_a_page_that_lies_before_one_in_use) {
  Fixture f({group(0)}, {3});
  f.keep(counted(30));
  Sequence s = f.of(counted(60));
  f.tree.insert("", s);
  EXPECT_EQ(f.cache.pages_free(0), 1);
  EXPECT_TRUE(f.tree.make_room(0, 2));
  f.expect_whole(s);
  f.cache.free(s);
  EXPECT_EQ(f.taken(), 0);
}

TEST(PrefixTree, finds_what_a_list_of_all_insertions_finds) {
  Random random(3);
  Fixture f({group(0)}, {4000});
  std::vector<Ids> kept;
  for (int64_t i = 0; i < test::scaled(400); ++i) {
    Ids ids;
    const auto n = static_cast<int64_t>(1 + random.below(150));
    for (int64_t j = 0; j < n; ++j) ids.push_back(random.below(8) == 0);
    int64_t want = 0;
    for (const Ids& other : kept)
      want = std::max<int64_t>(want,
                               std::mismatch(ids.begin(), ids.end(), other.begin(), other.end()).first - ids.begin());
    Sequence s = f.tree.match("", ids, n);
    ASSERT_EQ(s.length(), want);
    f.expect_whole(s);
    ASSERT_TRUE(f.append(s, std::span(ids).subspan(static_cast<size_t>(want))));
    f.tree.insert("", s);
    f.expect_whole(s);
    f.cache.free(s);
    kept.push_back(std::move(ids));
  }
  f.tree.shrink(0);
  EXPECT_EQ(f.taken(), 0);
}

TEST(PrefixTree, loses_no_page_and_no_content_in_a_random_walk) {
  Random random(11);
  Fixture f({group(0), group(90)}, {24, 20});
  std::vector<Sequence> live;
  for (int64_t i = 0; i < test::scaled(6000); ++i) {
    const auto pick = [&] { return static_cast<size_t>(random.below(live.size())); };
    const std::string space = random.below(4) == 0 ? "b" : "a";
    switch (random.below(6)) {
      case 0: {
        Ids ids;
        for (uint64_t j = 0, n = 1 + random.below(200); j < n; ++j) ids.push_back(random.below(20) == 0);
        live.push_back(f.tree.match(space, ids, static_cast<int64_t>(random.below(ids.size() + 1))));
        f.expect_whole(live.back());
        break;
      }
      case 1:
      case 2: {
        if (live.empty()) break;
        Sequence& s = live[pick()];
        Ids more;
        for (uint64_t j = 0, n = 1 + random.below(90); j < n; ++j) more.push_back(random.below(20) == 0);
        const auto n = static_cast<int64_t>(more.size());
        for (size_t g = 0; g < 2; ++g)
          if (const int64_t missing = f.cache.missing(s, n, g); missing > 0)
            f.tree.make_room(g, f.cache.pages_free(g) + missing);
        f.append(s, more);
        f.expect_whole(s);
        break;
      }
      case 3:
        if (!live.empty()) f.tree.insert(space, live[pick()]);
        break;
      case 4: {
        if (live.empty()) break;
        const size_t at = pick();
        f.cache.free(live[at]);
        live.erase(live.begin() + static_cast<int64_t>(at));
        break;
      }
      default: f.tree.shrink(static_cast<int64_t>(random.below(4000)));
    }
    for (const Sequence& s : live) f.expect_whole(s);
  }
  for (Sequence& s : live) f.cache.free(s);
  EXPECT_EQ(f.tree.bytes(), 100 * f.taken(0) + 10 * f.taken(1)) << "every page that is taken, once";
  f.tree.shrink(0);
  EXPECT_EQ(f.taken(0), 0);
  EXPECT_EQ(f.taken(1), 0);
}

TEST(PrefixTree, shows_what_is_unused_the_oldest_first_and_gives_up_what_goes) {
  using namespace std::chrono_literals;
  Fixture f({group(0)}, {64});
  FakeClock clock;
  PrefixTree tree(f.cache, f.page_bytes(1), clock);
  const auto keep = [&](std::string_view space, const Ids& ids) {
    Sequence s = f.of(ids);
    tree.insert(space, s);
    f.cache.free(s);
    clock.advance(1s);
  };
  keep("a", counted(100));
  keep("b", counted(130, 5000));
  keep("a", joined(counted(100), counted(30, 900)));  // behind the first
  std::vector<std::pair<std::string, int64_t>> shown;
  const auto look = [&](PrefixTree::Demotion what, std::chrono::nanoseconds unused_for) {
    shown.clear();
    tree.demote(unused_for, [&](std::string_view space, const Sequence& s) {
      f.expect_whole(s);
      shown.emplace_back(space, s.length());
      return what;
    });
    return shown;
  };
  using Shown = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(look(PrefixTree::Demotion::stays, 3s), Shown()) << "all were used 2 s ago or later";
  EXPECT_EQ(look(PrefixTree::Demotion::stays, 2s), (Shown{{"b", 130}}));
  EXPECT_EQ(look(PrefixTree::Demotion::enough, 1s), (Shown{{"b", 130}}));
  EXPECT_EQ(tree.entries(), 3);
  EXPECT_EQ(look(PrefixTree::Demotion::goes, 1s), (Shown{{"b", 130}, {"a", 130}, {"a", 100}}));
  EXPECT_EQ(tree.entries(), 0);
  EXPECT_EQ(tree.bytes(), 0);
  EXPECT_EQ(f.taken(), 0);
}

}  // namespace
}  // namespace hearth::decode
