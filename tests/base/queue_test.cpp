#include "base/queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace hearth {
namespace {

using Clock = Queue<int>::Clock;
constexpr auto kNever = std::chrono::hours(1);  // a test that waits so long has failed

TEST(Queue, a_patient_consumer_is_woken_by_what_is_urgent_alone) {
  Queue<int> queue;
  std::vector<int> got;
  std::thread producer([&] {
    queue.push(1, Wake::later);
    queue.push(2, Wake::later);
    queue.push(3, Wake::now);
  });
  EXPECT_TRUE(queue.take_all_until(got, Clock::now() + kNever));
  producer.join();
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3}));
}

TEST(Queue, what_can_wait_is_taken_when_the_time_has_come) {
  Queue<int> queue;
  std::vector<int> got;
  queue.push(1, Wake::later);
  EXPECT_TRUE(queue.take_all_until(got, Clock::now() + std::chrono::milliseconds(1)));
  EXPECT_EQ(got, std::vector<int>{1});
  EXPECT_TRUE(queue.take_all_until(got, Clock::now()));
  EXPECT_TRUE(got.empty()) << "the time comes though nothing was pushed";
}

TEST(Queue, a_consumer_that_waits_for_anything_is_woken_by_what_could_wait) {
  Queue<int> queue;
  std::vector<int> got;
  std::thread producer([&] { queue.push(1, Wake::later); });
  EXPECT_TRUE(queue.take_all(got));
  producer.join();
  EXPECT_EQ(got, std::vector<int>{1});
}

TEST(Queue, urgency_does_not_outlive_what_was_urgent) {
  Queue<int> queue;
  std::vector<int> got;
  queue.push(1, Wake::now);
  queue.take_ready(got);
  queue.push(2, Wake::later);
  const auto until = Clock::now() + std::chrono::milliseconds(20);
  EXPECT_TRUE(queue.take_all_until(got, until));
  EXPECT_GE(Clock::now(), until);
  EXPECT_EQ(got, std::vector<int>{2});
}

TEST(Queue, what_was_pushed_before_the_end_is_still_taken) {
  Queue<int> queue;
  std::vector<int> got;
  queue.push(1, Wake::later);
  queue.close();
  EXPECT_FALSE(queue.push(2));
  EXPECT_TRUE(queue.take_all_until(got, Clock::now() + kNever));
  EXPECT_EQ(got, std::vector<int>{1});
  EXPECT_FALSE(queue.take_all_until(got, Clock::now() + kNever));
  EXPECT_FALSE(queue.take_all(got));
}

}  // namespace
}  // namespace hearth
