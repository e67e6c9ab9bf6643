#include "server/front/recent_rate.h"

#include <gtest/gtest.h>

namespace hearth::server {
namespace {

TEST(RecentRate, nothing_is_known_before_an_answer) {
  RecentRate rate;
  EXPECT_FALSE(rate.per_second(5'000));
  rate.add(5'000, 0, 12);
  rate.add(5'000, 250, 0);
  EXPECT_FALSE(rate.per_second(5'000)) << "neither says how fast";
}

TEST(RecentRate, pauses_between_answers_do_not_count) {
  RecentRate rate;
  rate.add(10'000, 500, 50);
  rate.add(30'000, 1'500, 150);
  EXPECT_DOUBLE_EQ(*rate.per_second(50'000), 100);
}

TEST(RecentRate, answers_at_the_same_time_add_up) {
  RecentRate rate;
  rate.add(10'000, 1'000, 40);
  rate.add(10'000, 1'000, 40);
  rate.add(10'500, 1'000, 40);  // half of it beside the others
  EXPECT_DOUBLE_EQ(*rate.per_second(11'000), 80);
  rate.add(12'000, 3'000, 40);  // around all of them
  EXPECT_DOUBLE_EQ(*rate.per_second(12'000), 160 / 3.0);
}

TEST(RecentRate, what_is_older_than_a_minute_is_forgotten) {
  RecentRate rate;
  rate.add(10'000, 1'000, 10);
  rate.add(60'000, 1'000, 90);
  EXPECT_DOUBLE_EQ(*rate.per_second(69'999), 50);
  EXPECT_DOUBLE_EQ(*rate.per_second(70'000), 90);
  EXPECT_FALSE(rate.per_second(120'000));
}

TEST(RecentRate, keeps_the_last_answers_alone) {
  RecentRate rate;
  for (int i = 0; i < 1'000; ++i) rate.add(1'000 + i, 1, i < 744 ? 1 : 2);
  EXPECT_DOUBLE_EQ(*rate.per_second(2'000), 2'000);
}

}  // namespace
}  // namespace hearth::server
