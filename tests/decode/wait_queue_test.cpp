#include "decode/wait_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::decode {
namespace {

const auto kAny = [](const int&) { return true; };

std::vector<int> all(WaitQueue<int>& queue) {
  std::vector<int> order;
  while (const auto item = queue.take(kAny)) order.push_back(*item);
  return order;
}

TEST(WaitQueue, owners_take_turns_and_each_is_served_in_order) {
  WaitQueue<int> queue;
  for (const int i : {1, 2, 3}) queue.push("a", i);
  for (const int i : {11, 12}) queue.push("b", i);
  queue.push("c", 21);
  EXPECT_EQ(queue.size(), 6);
  EXPECT_EQ(all(queue), (std::vector{1, 11, 21, 2, 12, 3}));
  EXPECT_EQ(queue.size(), 0);
}

TEST(WaitQueue, a_head_that_does_not_fit_is_overtaken_eight_times) {
  WaitQueue<int> queue;
  queue.push("long", 100);
  queue.push("long", 0);  // behind it: never before it
  for (int i = 0; i < 20; ++i) queue.push("short", i + 1);
  const auto small = [](const int& item) { return item < 100; };
  for (int i = 0; i < WaitQueue<int>::kOvertakenMax; ++i) EXPECT_EQ(queue.take(small), i + 1);
  EXPECT_EQ(queue.take(small), std::nullopt);
  EXPECT_EQ(queue.take(kAny), 100);
  EXPECT_EQ(queue.take(small), 9);
}

TEST(WaitQueue, what_comes_back_stands_in_front) {
  WaitQueue<int> queue;
  queue.push("a", 2);
  queue.push("b", 3);
  queue.push_front("a", 1);
  queue.push_front("c", 0);
  EXPECT_EQ(all(queue), (std::vector{0, 1, 3, 2}));
}

TEST(WaitQueue, items_can_be_taken_out) {
  WaitQueue<int> queue;
  for (int i = 0; i < 6; ++i) queue.push(i % 2 ? "odd" : "even", i);
  std::vector<int> gone;
  queue.remove([](const int& i) { return i % 2 == 1 || i == 2; }, [&](int i) { gone.push_back(i); });
  EXPECT_EQ(gone, (std::vector{2, 1, 3, 5}));
  EXPECT_EQ(all(queue), (std::vector{0, 4}));
}

}  // namespace
}  // namespace hearth::decode
