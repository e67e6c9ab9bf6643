#include "cli/units.h"

#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

TEST(Units, sizes_carry_units) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},
      {"512", 512},
      {"4kB", 4000},
      {"4K", 4000},
      {"1.5 GB", 1'500'000'000},
      {"2GiB", 2147483648},
      {"1TiB", 1099511627776},
      {"0.5MiB", 524288},
      {"3b", 3},
  };
  for (const auto& [text, bytes] : cases) EXPECT_EQ(parse_size(text), bytes) << text;
  for (const char* bad : {"", "x", "4XB", "-1", "GB", "1e3", "1..5", "1 2", "99999999TB", "nan", "inf"})
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
}

TEST(Units, durations_carry_units) {
  EXPECT_EQ(parse_duration("250ms"), 0.25);
  EXPECT_EQ(parse_duration("10m"), 600.0);
  EXPECT_EQ(parse_duration("2h"), 7200.0);
  EXPECT_EQ(parse_duration("1.5"), 1.5);
  for (const char* bad : {"", "-1s", "m", "1y", "s1"}) EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
}

TEST(Units, numbers_are_whole_words) {
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("+7"), 7);
  for (const char* bad : {"", "1.0", "1x", " 1", "99999999999999999999"})
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  EXPECT_EQ(parse_number("1e-3"), 1e-3);
  for (const char* bad : {"", "nan", "inf", "1,5", "1e999"}) EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
}

TEST(Units, sizes_are_shown_short) {
  EXPECT_EQ(show_size(0), "0 B");
  EXPECT_EQ(show_size(999), "999 B");
  EXPECT_EQ(show_size(1000), "1.0 kB");
  EXPECT_EQ(show_size(98'362'432), "98 MB");
  EXPECT_EQ(show_size(999'600), "1.0 MB");
  EXPECT_EQ(show_size(1'117'320'768), "1.1 GB");
}

TEST(Units, durations_are_shown_short) {
  EXPECT_EQ(show_duration(0), "0 s");
  EXPECT_EQ(show_duration(0.4), "0 s");
  EXPECT_EQ(show_duration(99.4), "99 s");
  EXPECT_EQ(show_duration(99.6), "2 min");
  EXPECT_EQ(show_duration(300), "5 min");
  EXPECT_EQ(show_duration(7'200), "2.0 h");
  EXPECT_EQ(show_duration(86'400), "24.0 h");
  EXPECT_EQ(show_duration(259'200), "3.0 d");
}

}  // namespace
}  // namespace hearth::cli
