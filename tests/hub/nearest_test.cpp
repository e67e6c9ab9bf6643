#include "hub/nearest.h"

#include <gtest/gtest.h>

namespace hearth::hub {
namespace {

TEST(Nearest, counts_edits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("ABC", "abc"), 0u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("verion", "version"), 1u);
  EXPECT_EQ(edit_distance("improt", "import"), 1u);  // neighbours swapped
}

TEST(Nearest, suggests_only_what_is_near) {
  EXPECT_EQ(nearest("verion", {"ls", "version", "verbose"}), (std::vector<std::string>{"version"}));
  EXPECT_EQ(nearest("comp", {"completion", "config"}), (std::vector<std::string>{"completion"}));
  EXPECT_TRUE(nearest("zzz", {"ls", "version"}).empty());
  EXPECT_TRUE(nearest("ls", {}).empty());
  EXPECT_EQ(nearest("aa", {"ab", "ac", "ad", "aa"}, 2), (std::vector<std::string>{"aa", "ab"}));
  EXPECT_TRUE(nearest(std::string(1000, 'a'), {std::string(1000, 'a')}).empty());
}

TEST(Nearest, finds_parts_without_case) {
  EXPECT_TRUE(contains_ignoring_case("org/SmolLM2", "smollm"));
  EXPECT_TRUE(contains_ignoring_case("x", ""));
  EXPECT_FALSE(contains_ignoring_case("org/SmolLM2", "qwen"));
}

}  // namespace
}  // namespace hearth::hub
