#include "base/ascii.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Ascii, letters_and_digits_and_nothing_else) {
  const std::string lower = "abcdefghijklmnopqrstuvwxyz", upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", digits = "0123456789";
  for (int b = -128; b < 128; ++b) {
    const char c = static_cast<char>(b);
    const size_t small = lower.find(c), large = upper.find(c);
    EXPECT_EQ(ascii::is_lower(c), small != std::string::npos) << b;
    EXPECT_EQ(ascii::is_upper(c), large != std::string::npos) << b;
    EXPECT_EQ(ascii::is_digit(c), digits.find(c) != std::string::npos) << b;
    EXPECT_EQ(ascii::is_alnum(c), ascii::is_lower(c) || ascii::is_upper(c) || ascii::is_digit(c)) << b;
    EXPECT_EQ(ascii::lower(c), ascii::is_upper(c) ? lower[large] : c) << b;
    EXPECT_EQ(ascii::upper(c), ascii::is_lower(c) ? upper[small] : c) << b;
  }
  EXPECT_EQ(ascii::lower("BF16 \u00c9"), "bf16 \u00c9");
}

}  // namespace
}  // namespace hearth
