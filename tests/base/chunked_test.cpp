#include "base/chunked.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>

namespace hearth {
namespace {

static_assert(std::random_access_iterator<Chunked<int>::iterator>);
static_assert(std::random_access_iterator<Chunked<int>::const_iterator>);

TEST(Chunked, behaves_as_a_vector_under_random_changes) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 50; ++trial) {
    Chunked<std::string> chunked;
    std::vector<std::string> vector;
    for (int step = 0; step < 800; ++step) {
      const std::string item = std::to_string(random());
      const size_t at = vector.empty() ? 0 : random() % vector.size();
      const auto offset = static_cast<std::ptrdiff_t>(at);
      switch (random() % 8) {
        case 0: chunked.insert(chunked.begin() + offset, item), vector.insert(vector.begin() + offset, item); break;
        case 1:
          if (!vector.empty()) chunked.erase(chunked.begin() + offset), vector.erase(vector.begin() + offset);
          break;
        case 2:
          if (!vector.empty()) chunked.pop_back(), vector.pop_back();
          break;
        default: chunked.push_back(item), vector.push_back(item);
      }
      ASSERT_EQ(chunked.size(), vector.size());
    }
    EXPECT_TRUE(std::equal(chunked.begin(), chunked.end(), vector.begin(), vector.end()));
    const Chunked<std::string> copy = chunked;
    EXPECT_TRUE(copy == chunked);
    Chunked<std::string> moved = std::move(chunked);
    EXPECT_TRUE(copy == moved);
    std::sort(moved.begin(), moved.end());
    std::sort(vector.begin(), vector.end());
    EXPECT_TRUE(std::equal(moved.begin(), moved.end(), vector.begin(), vector.end()));
    const size_t gone = moved.erase_if([](const std::string& s) { return s[0] == '1'; });
    EXPECT_EQ(gone, std::erase_if(vector, [](const std::string& s) { return s[0] == '1'; }));
    EXPECT_TRUE(std::equal(moved.begin(), moved.end(), vector.begin(), vector.end()));
  }
}

TEST(Chunked, an_element_may_be_appended_to_its_own_container) {
  Chunked<std::string> items{std::string(100, 'x')};
  for (int i = 0; i < 1000; ++i) items.push_back(items[0]);
  for (const std::string& s : items) ASSERT_EQ(s, std::string(100, 'x'));
}

TEST(Chunked, references_stay_valid_past_the_first_chunk) {
  Chunked<int> items;
  for (size_t i = 0; i < Chunked<int>::kChunk; ++i) items.push_back(static_cast<int>(i));
  const int* first = &items[0];
  for (int i = 0; i < 100'000; ++i) items.push_back(i);
  EXPECT_EQ(first, &items[0]);
  EXPECT_EQ(std::accumulate(items.begin(), items.end(), int64_t{0}), 255 * 128 + int64_t{99'999} * 50'000);
}

TEST(Chunked, holds_what_only_moves) {
  Chunked<std::unique_ptr<int>> items;
  for (int i = 0; i < 600; ++i) items.push_back(std::make_unique<int>(i));
  items.erase(items.begin(), items.begin() + 300);
  EXPECT_EQ(*items.front(), 300);
  EXPECT_EQ(*items.back(), 599);
  items.clear();
  EXPECT_TRUE(items.empty());
}

// A copy may fail for want of memory, also where the compiler writes it.
struct Holder {
  Chunked<int> items;
};
static_assert(!std::is_nothrow_copy_assignable_v<Holder> && std::is_nothrow_move_assignable_v<Holder>);

TEST(Chunked, is_assigned_as_a_copy_and_as_what_it_was) {
  Chunked<int> a{1, 2, 3};
  const Chunked<int> b{4};
  a = b;
  EXPECT_EQ(a, b);
  Chunked<int>& self = a;
  a = std::move(self);
  EXPECT_EQ(a, b);
  a = Chunked<int>{5, 6};
  EXPECT_EQ(a, (Chunked<int>{5, 6}));
}

}  // namespace
}  // namespace hearth
