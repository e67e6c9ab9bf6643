#include "cli/text_width.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

namespace hearth::cli {
namespace {

TEST(TextWidth, counts_columns_by_cluster) {
  const std::pair<const char*, int> cases[] = {
      {"", 0},
      {"abc", 3},
      {"\xC3\xA9", 1},
      {"e\xCC\x81", 1},                                     // e + combining acute
      {"\xE6\x97\xA5\xE6\x9C\xAC", 4},                      // two wide characters
      {"\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB", 2},  // woman + ZWJ + laptop
      {"\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA", 2},              // a flag
      {"\xE2\x9D\xA4\xEF\xB8\x8F", 2},                      // heart in emoji style
      {"\xED\x95\x9C", 2},                                  // a Hangul syllable
  };
  for (const auto& [text, width] : cases) EXPECT_EQ(width_of(text), width) << text;
  EXPECT_EQ(clusters("e\xCC\x81x").size(), 2u);
  EXPECT_EQ(clusters("a\nb").size(), 3u);
}

TEST(TextWidth, clusters_tile_any_text) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? 0xE0 + random() % 32 : random());
    const std::string text = repaired(bytes);
    size_t at = 0;
    for (const Cluster& cluster : clusters(text)) {
      EXPECT_EQ(cluster.begin, at) << seed;
      EXPECT_LT(cluster.begin, cluster.end) << seed;
      at = cluster.end;
    }
    EXPECT_EQ(at, text.size()) << seed;
  }
}

}  // namespace
}  // namespace hearth::cli
