#include "server/http/bad_tries.h"

#include <gtest/gtest.h>

namespace hearth::server {
namespace {

using namespace std::chrono_literals;
const BadTries::Clock::time_point kStart{1000s};

TEST(BadTries, ten_are_free_then_each_costs_a_second) {
  BadTries tries;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(tries.add("10.0.0.1", kStart), 0ms) << i;
  EXPECT_EQ(tries.add("10.0.0.1", kStart), 1000ms);
  EXPECT_EQ(tries.add("10.0.0.1", kStart + 1s), 1000ms);
  EXPECT_EQ(tries.add("10.0.0.2", kStart + 1s), 0ms) << "of another address";
}

TEST(BadTries, those_at_once_queue_up_to_a_bound) {
  BadTries tries;
  for (int i = 0; i < 10; ++i) tries.add("a", kStart);
  for (int i = 1; i <= 9; ++i) EXPECT_EQ(tries.add("a", kStart), i * 1000ms);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(tries.add("a", kStart), 10'000ms);
}

TEST(BadTries, a_minute_of_peace_forgets) {
  BadTries tries;
  for (int i = 0; i < 20; ++i) tries.add("a", kStart);
  EXPECT_GT(tries.add("a", kStart + 59s), 0ms);
  EXPECT_EQ(tries.add("a", kStart + 119s), 0ms);
}

TEST(BadTries, addresses_are_bounded) {
  BadTries tries;
  for (int i = 0; i < 11; ++i) tries.add("old", kStart);
  for (size_t i = 0; i < BadTries::kPeersMax; ++i) tries.add(std::to_string(i), kStart + 1s);
  EXPECT_EQ(tries.add("old", kStart + 2s), 0ms) << "it made room";
}

}  // namespace
}  // namespace hearth::server
