#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace hearth::text {
namespace {

// Each pair: bytes, and Python's bytes.decode(errors="replace") of them.
const std::vector<std::pair<std::string, std::string>> kCases = {
    {"", ""},
    {"abc", "abc"},
    {"h\xC3\xA9llo \xF0\x9F\x98\x80", "h\xC3\xA9llo \xF0\x9F\x98\x80"},
    {"\xC3", "\uFFFD"},
    {"\xE2\x82", "\uFFFD"},
    {"\xF0\x9F\x98", "\uFFFD"},
    {"\xE2\x82x", "\uFFFDx"},
    {"\xF0\x9F\x98\xF0\x9F\x98\x80", "\uFFFD\U0001F600"},
    {"\x80\x80", "\uFFFD\uFFFD"},
    {"\xC0\xAF", "\uFFFD\uFFFD"},
    {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},
    {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
    {"\xF0\x80\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
    {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
    {"\xF5\xFF", "\uFFFD\uFFFD"},
    {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBFx", "\uFFFD\uFFFD\uFFFD\uFFFDx"},
    {std::string("a\0b", 3), std::string("a\0b", 3)},
};

TEST(Detokenizer, every_cut_gives_the_text_that_python_decodes) {
  for (const auto& [bytes, want] : kCases) {
    for (size_t cut = 0; cut <= bytes.size(); ++cut)
      for (size_t second = cut; second <= bytes.size(); ++second) {
        Detokenizer d;
        std::string got;
        for (const auto& piece : {bytes.substr(0, cut), bytes.substr(cut, second - cut), bytes.substr(second)}) {
          const std::string out = d.push(piece);
          EXPECT_TRUE(is_utf8(out));
          got += out;
        }
        EXPECT_EQ(got + d.finish(), want) << "cut at " << cut << ", " << second;
      }
  }
}

TEST(Detokenizer, holds_only_what_can_still_become_a_character) {
  Detokenizer d;
  EXPECT_EQ(d.push("\xF0\x9F"), "");
  EXPECT_EQ(d.bytes_held(), 2u);
  EXPECT_EQ(d.push("\x98\x80"), "\U0001F600");
  EXPECT_EQ(d.bytes_held(), 0u);
  EXPECT_EQ(d.push("\xED\xA0"), "\uFFFD\uFFFD");  // a surrogate can never be completed
  EXPECT_EQ(d.finish(), "");
  EXPECT_EQ(d.push("\xC3"), "");
  EXPECT_EQ(d.finish(), "\uFFFD");
  EXPECT_EQ(d.finish(), "");
}

TEST(Detokenizer, random_bytes_byte_by_byte_equal_the_whole) {
  std::mt19937 rng(7);
  const std::string alphabet = "a\x80\xBF\xC2\xC3\xE0\xA0\xE2\x82\xAC\xED\x9F\xF0\x90\x9F\x98\xF4\x8F\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 24; ++i) bytes += alphabet[rng() % alphabet.size()];
    Detokenizer whole, pieces;
    std::string want = whole.push(bytes), got;
    want += whole.finish();
    for (const char c : bytes) {
      got += pieces.push(std::string_view(&c, 1));
      ASSERT_LE(pieces.bytes_held(), 3u);
    }
    ASSERT_EQ(got + pieces.finish(), want) << "round " << round;
    ASSERT_TRUE(is_utf8(want));
  }
}

}  // namespace
}  // namespace hearth::text
