#include "base/clock.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using namespace std::chrono_literals;

WallTime wall(std::chrono::sys_days day, std::chrono::nanoseconds of_day) { return day + of_day; }

TEST(Iso8601, writes_utc_with_milliseconds_rounded_down) {
  using namespace std::chrono;
  EXPECT_EQ(iso8601(WallTime{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(iso8601(wall(2026y / November / 29, 20h + 19min + 29s + 123'999'999ns)), "2026-11-29T20:19:29.123Z");
  EXPECT_EQ(iso8601(wall(2024y / February / 29, 23h + 59min + 59s + 999ms)), "2024-02-29T23:59:59.999Z");
  EXPECT_EQ(iso8601(WallTime{-1ns}), "1969-12-31T23:59:59.999Z");
}

TEST(FakeClock, moves_only_when_told) {
  FakeClock clock(WallTime{10s});
  EXPECT_EQ(clock.monotonic(), 0ns);
  EXPECT_EQ(clock.wall(), WallTime{10s});
  clock.advance(1500ms);
  EXPECT_EQ(clock.monotonic(), 1500ms);
  EXPECT_EQ(clock.wall(), WallTime{11500ms});
  clock.set_wall(WallTime{3s});
  EXPECT_EQ(clock.monotonic(), 1500ms);
  EXPECT_EQ(clock.wall(), WallTime{3s});
}

TEST(SystemClock, monotonic_time_never_goes_back_and_wall_time_is_this_century) {
  const Clock& clock = system_clock();
  auto before = clock.monotonic();
  for (int i = 0; i < 10'000; ++i) {
    const auto now = clock.monotonic();
    ASSERT_GE(now, before);
    before = now;
  }
  EXPECT_GT(clock.wall(), WallTime{std::chrono::sys_days{std::chrono::year{2020} / 1 / 1}});
}

}  // namespace
}  // namespace hearth
