// the frames of a client, byte by byte and by the million.
#include "net/websocket_frame.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/utf8.h"
#include "support/scale.h"

namespace hearth::net::test {
namespace {

using Result = FrameReader::Result;
constexpr size_t kMost = 1000;

std::string masked(int opcode, std::string_view payload, bool last = true) {
  std::string out = frame_header(static_cast<Opcode>(opcode), payload.size());
  if (!last) out[0] = static_cast<char>(out[0] & 0x7F);
  out[1] = static_cast<char>(out[1] | '\x80');
  const std::string mask = "\x01\x80\x7f\xfe";
  out += mask;
  for (size_t i = 0; i < payload.size(); ++i) out += static_cast<char>(payload[i] ^ mask[i % 4]);
  return out;
}

struct Seen {
  Result result;
  std::string payload;
  int code = 0;
  bool operator==(const Seen&) const = default;
};

// All that these bytes are, handed over in pieces.
std::vector<Seen> read_all(std::string_view bytes, size_t piece, size_t most = kMost) {
  FrameReader reader(most);
  std::vector<Seen> seen;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    for (;;) {
      const Result result = reader.feed(part);
      if (result == Result::need_more) {
        EXPECT_TRUE(part.empty());
        break;
      }
      seen.push_back({result, reader.take(), result == Result::close || result == Result::failed ? reader.code() : 0});
      if (result == Result::failed) return seen;
    }
  }
  return seen;
}

TEST(WebSocketFrame, is_the_same_whatever_the_pieces) {
  const std::string bytes = masked(1, "Gr", false) + masked(9, "between") + masked(0, "öße") + masked(2, "\xff") +
                            masked(10, "") + masked(1, std::string(kMost, 'x')) +
                            masked(8,
                                   "\x03\xe8"
                                   "bye");
  const std::vector<Seen> whole = read_all(bytes, bytes.size());
  ASSERT_EQ(whole.size(), 6u);
  EXPECT_EQ(whole[1], (Seen{Result::message, "Größe"}));
  EXPECT_EQ(whole.back(), (Seen{Result::close, "bye", 1000}));
  for (size_t piece = 1; piece < 40; ++piece) EXPECT_EQ(read_all(bytes, piece), whole) << piece;
}

// The payload of none of these is there: a header is enough.
TEST(WebSocketFrame, is_refused_by_its_header_alone) {
  const auto code_of = [](std::string_view header, size_t most = kMost) {
    const std::vector<Seen> seen = read_all(header, header.size(), most);
    return seen.empty() || seen[0].result != Result::failed ? 0 : seen[0].code;
  };
  const std::string mask(4, '\0');
  for (const size_t bytes : {kMost - 1, kMost}) {
    std::string header = masked(1, std::string(bytes, 'x'));
    EXPECT_EQ(code_of(header), 0) << bytes;
  }
  EXPECT_EQ(code_of(std::string("\x81\xfe\x03\xe9", 4) + mask), kCloseTooBig) << "one more than 1000";
  EXPECT_EQ(code_of(std::string("\x82\xff\x00\x00\x00\x80\x00\x00\x00\x00", 10) + mask), kCloseTooBig) << "512 GB";
  EXPECT_EQ(code_of(std::string("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 10) + mask), kCloseTooBig);
  EXPECT_EQ(code_of(std::string("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10) + mask), kCloseProtocol) << "negative";
  EXPECT_EQ(code_of(std::string("\x81\xfe\x00\x05", 4) + mask), kCloseProtocol) << "a long form of a short length";
  EXPECT_EQ(code_of(std::string("\x81\xff\x00\x00\x00\x00\x00\x00\xff\xff", 10) + mask), kCloseProtocol);
  EXPECT_EQ(code_of(std::string("\x89\xfe\x00\x7e", 4) + mask), kCloseProtocol) << "a ping of 126 bytes";
  EXPECT_EQ(code_of("\x81\x05"), kCloseProtocol) << "no mask";
  EXPECT_EQ(code_of(masked(1, "x", false) + std::string("\x80\xfe\x03\xe8", 4) + mask), kCloseTooBig) << "together";
}

TEST(WebSocketFrame, has_a_bounded_number_of_fragments) {
  const std::string empty = masked(0, "", false);
  std::string bomb = masked(1, "", false);
  for (int i = 1; i < 16'384; ++i) bomb += empty;
  EXPECT_TRUE(read_all(bomb, 4096).empty());
  EXPECT_EQ(read_all(bomb + masked(0, ""), 4096).back().code, kCloseTooBig);
}

TEST(WebSocketFrame, takes_the_codes_that_a_close_may_carry) {
  for (const int code : {1000, 1001, 1003, 1007, 1013, 3000, 4413, 4999}) EXPECT_TRUE(is_close_code(code)) << code;
  for (const int code : {0, 999, 1004, 1005, 1006, 1014, 1015, 2999, 5000}) EXPECT_FALSE(is_close_code(code)) << code;
  EXPECT_EQ(read_all(masked(8, ""), 9).back(), (Seen{Result::close, "", kCloseNoCode}));
  EXPECT_EQ(read_all(masked(8, "\x03\xe8\xff"), 9).back().code, kCloseNotUtf8);
}

TEST(WebSocketFrame, answers_a_key) {
  EXPECT_EQ(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // RFC 6455 section 1.3
  for (const char* key : {"", "x", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25j\nQ==", "dGhlIHNhbXBsZSBub25jZQ==="})
    EXPECT_EQ(accept_of(key), "") << key;
}

// Random streams of good frames with a few bytes changed: whatever they are, they are the same in two pieces, text is
// UTF-8, nothing is larger than it may be, and behind a failure there is nothing.
void fuzz(int64_t frames) {
  std::mt19937_64 random(20261201);
  const auto below = [&](uint64_t n) { return random() % n; };
  constexpr int kOpcodes[] = {0, 1, 2, 8, 9, 10, 3, 11};
  int64_t made = 0, messages = 0, failures = 0;
  while (made < frames) {
    std::string bytes;
    for (uint64_t n = 1 + below(12); n > 0; --n, ++made) {
      std::string payload(below(4) == 0 ? below(kMost + 3) : below(20), '\0');
      const bool is_text = below(8) > 0;
      for (char& c : payload) c = static_cast<char>(is_text ? 'a' + below(26) : below(256));
      bytes += masked(kOpcodes[below(below(10) == 0 ? 8 : 3)], payload, below(4) > 0);
    }
    if (below(3) == 0)
      for (uint64_t n = 1 + below(3); n > 0; --n) bytes[below(bytes.size())] = static_cast<char>(below(256));
    const std::vector<Seen> whole = read_all(bytes, bytes.size());
    ASSERT_EQ(read_all(bytes, 1 + below(bytes.size())), whole) << made;
    for (const Seen& one : whole) {
      ASSERT_LE(one.payload.size(), kMost);
      if (one.result == Result::message) ++messages;
      if (one.result == Result::failed) ++failures;
      if (one.result == Result::failed) {
        ASSERT_TRUE(one.code == kCloseProtocol || one.code == kCloseNotUtf8 || one.code == kCloseTooBig) << one.code;
      }
    }
  }
  EXPECT_GT(messages, frames / 100);
  EXPECT_GT(failures, frames / 100);
}

TEST(WebSocketFrame, fifty_thousand_random_ones) { fuzz(static_cast<int64_t>(50'000 * hearth::test::scale())); }

// 1 M frames.
TEST(WebSocketFrameFull, a_million_random_ones) { fuzz(1'000'000); }

}  // namespace
}  // namespace hearth::net::test
