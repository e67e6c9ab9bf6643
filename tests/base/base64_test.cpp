#include "base/base64.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string of(std::string_view text) { return base64(std::as_bytes(std::span(text))); }

TEST(Base64, vectors_of_rfc_4648) {
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foob"), "Zm9vYg==");
  EXPECT_EQ(of("fooba"), "Zm9vYmE=");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
}

TEST(Base64, every_digit_of_the_alphabet) {
  std::string bytes;
  for (int i = 0; i < 64; i += 4) {
    const uint32_t group = static_cast<uint32_t>(i << 18 | (i + 1) << 12 | (i + 2) << 6 | (i + 3));
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift);
  }
  EXPECT_EQ(of(bytes), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
}

}  // namespace
}  // namespace hearth
