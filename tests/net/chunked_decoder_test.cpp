#include "net/chunked_decoder.h"

#include <gtest/gtest.h>

namespace hearth::net {
namespace {

using Result = ChunkedDecoder::Result;

struct Outcome {
  Result result = Result::need_more;
  std::string body, rest;
};

Outcome decode(std::string_view bytes, size_t step, size_t bytes_max = 100) {
  ChunkedDecoder decoder;
  Outcome out;
  while (out.result == Result::need_more && !bytes.empty()) {
    std::string_view piece = bytes.substr(0, step);
    const size_t given = piece.size();
    out.result = decoder.feed(piece, out.body, bytes_max);
    bytes.remove_prefix(given - piece.size());
    if (out.result == Result::need_more) {
      EXPECT_TRUE(piece.empty());
    }
  }
  out.rest = bytes;
  return out;
}

TEST(ChunkedDecoder, joins_chunks_however_they_come) {
  const std::string bytes = "3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\nNEXT";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    const Outcome out = decode(bytes, step);
    EXPECT_EQ(out.result, Result::done) << step;
    EXPECT_EQ(out.body, "abc0123456789") << step;
    EXPECT_EQ(out.rest, "NEXT") << step;
  }
}

TEST(ChunkedDecoder, every_prefix_needs_more) {
  const std::string bytes = "3\r\nabc\r\n0\r\nA: b\r\n\r\n";
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_EQ(decode(std::string_view(bytes).substr(0, n), bytes.size()).result, Result::need_more) << n;
}

TEST(ChunkedDecoder, malformed) {
  for (const char* bytes : {"3\nabc\r\n", "\r\n", "x\r\n", "-1\r\n", "0x3\r\nabc", " 3\r\nabc", "3 x\r\nabc",
                            "3\r\nabcd\r\n", "3\r\nabc\n", "3\r\nabc\r\r", "3\rabc", "1000000000000000\r\n",
                            "0\r\nno header\r\n\r\n", "0\r\n folded: x\r\n", "3;\x01\r\nabc"})
    for (size_t step : {size_t{1}, size_t{100}})
      EXPECT_EQ(decode(bytes, step, SIZE_MAX).result, Result::malformed) << bytes << " by " << step;
}

TEST(ChunkedDecoder, bounds) {
  EXPECT_EQ(decode("4\r\nabcd\r\n0\r\n\r\n", 3, 4).result, Result::done);
  EXPECT_EQ(decode("5\r\nabcde\r\n0\r\n\r\n", 3, 4).result, Result::too_large);
  EXPECT_EQ(decode("2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", 3, 4).result, Result::too_large);
  EXPECT_EQ(decode("1;" + std::string(2000, 'x') + "\r\n", 7).result, Result::malformed);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 100; ++i) trailers += "A: " + std::string(200, 'x') + "\r\n";
  EXPECT_EQ(decode(trailers, 1000).result, Result::malformed);
}

}  // namespace
}  // namespace hearth::net
