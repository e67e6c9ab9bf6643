#include "base/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

namespace hearth {
namespace {

bool is_scalar(uint32_t c) { return c < 0xD800 || (c > 0xDFFF && c < 0x110000); }

std::string encoded(uint32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

TEST(Utf8, every_character_survives_and_no_surrogate_does) {
  EXPECT_EQ(encoded('a'), "a");
  EXPECT_EQ(encoded(0xE9), "\xC3\xA9");
  EXPECT_EQ(encoded(0x20AC), "\xE2\x82\xAC");
  EXPECT_EQ(encoded(0x1F525), "\xF0\x9F\x94\xA5");
  for (uint32_t c = 0; c < 0x110000; ++c) {
    const std::string bytes = encoded(c);
    const Utf8Char found = utf8_decode(bytes + "x");
    ASSERT_EQ(found.size, is_scalar(c) ? bytes.size() : 0u) << c;
    ASSERT_EQ(found.value, is_scalar(c) ? c : 0);
    for (size_t cut = 1; cut < bytes.size() && is_scalar(c); ++cut) {
      const Utf8Start start = utf8_start(std::string_view(bytes).substr(0, cut));
      ASSERT_EQ(start.needed, bytes.size()) << c;
      ASSERT_EQ(start.valid, cut) << c;
    }
  }
}

// By definition: bytes are a character when they are the encoding of one.
TEST(Utf8, bytes_are_a_character_when_one_is_encoded_so) {
  std::unordered_set<std::string> characters;
  for (uint32_t c = 0; c < 0x110000; ++c)
    if (is_scalar(c)) characters.insert(encoded(c));
  const auto agree = [&](const std::string& bytes) {
    size_t size = 0;
    for (size_t n = 1; n <= bytes.size(); ++n)
      if (characters.contains(bytes.substr(0, n))) size = n;
    return utf8_prefix(bytes) == size && utf8_decode(bytes).size == size && utf8_start(bytes).complete() == (size > 0);
  };
  constexpr unsigned kEdges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  EXPECT_EQ(utf8_prefix(""), 0u);
  for (unsigned a = 0; a < 256; ++a)
    for (unsigned b = 0; b < 256; ++b) {
      const std::string two = {static_cast<char>(a), static_cast<char>(b)};
      ASSERT_TRUE(agree(two)) << a << ' ' << b;
      for (const unsigned c : kEdges)
        for (const unsigned d : kEdges)
          ASSERT_TRUE(agree(two + static_cast<char>(c) + static_cast<char>(d)))
              << a << ' ' << b << ' ' << c << ' ' << d;
    }
}

TEST(Utf8, a_part_cuts_no_character) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\xA5";
  const size_t sizes[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t max = 0; max < std::size(sizes); ++max) EXPECT_EQ(utf8_cut(text, max), text.substr(0, sizes[max])) << max;
}

TEST(Utf8, replaces_each_maximal_broken_part_once) {
  const std::string r(kReplacement);
  EXPECT_EQ(repaired("ab\xC3\xA9"), "ab\xC3\xA9");
  EXPECT_EQ(repaired("\xFF"), r);
  EXPECT_EQ(repaired("\xC3"), r);
  EXPECT_EQ(repaired("\xE2\x82x"), r + "x");  // cut euro sign
  EXPECT_EQ(repaired("\xF0\x9F\x94"), r);
  EXPECT_EQ(repaired("\xC0\xAF"), r + r);          // overlong
  EXPECT_EQ(repaired("\xED\xA0\x80"), r + r + r);  // surrogate
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(repaired("\x80"), r);
}

TEST(Utf8, any_bytes_become_text_that_stays_as_it_is) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? 0xE0 + random() % 32 : random());
    const std::string text = repaired(bytes);
    EXPECT_TRUE(is_utf8(text)) << seed;
    EXPECT_EQ(repaired(text), text) << seed;
    EXPECT_EQ(is_utf8(bytes), text == bytes) << seed;
  }
}

}  // namespace
}  // namespace hearth
