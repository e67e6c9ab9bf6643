#include "text/tokenizer/piece_index.h"

#include <gtest/gtest.h>

#include "text/tokenizer/decoder.h"

namespace hearth::text {
namespace {

TEST(PieceIndex, grows_with_its_pieces_and_finds_each) {
  std::vector<std::string> pieces;
  PieceIndex index(pieces, 3);
  for (int i = 0; i < 20000; ++i) {
    pieces.push_back("piece " + std::to_string(i * 7919 % 20011));
    ASSERT_EQ(index.insert(i), -1) << i;
  }
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(index.find(pieces[static_cast<size_t>(i)]), i);
  EXPECT_EQ(index.find("piece"), -1);
  EXPECT_EQ(index.find(""), -1);
  pieces.push_back(pieces[5]);
  EXPECT_EQ(index.insert(20000), 5);
  EXPECT_EQ(index.find(pieces[5]), 5);
}

TEST(DecodedPieces, of_the_byte_alphabet_and_of_foreign_spellings) {
  const std::vector<std::string> pieces = {"\u0120the", "", "caf\u00c3\u00a9", "<|im_end|>", "\u20ac\u0120"};
  const DecodedPieces decoded = decode_pieces(pieces, {DecodeByteLevel{}}, "test");
  EXPECT_EQ(decoded.bytes[0], " the");
  EXPECT_EQ(decoded.bytes[1], "");
  EXPECT_EQ(decoded.bytes[2], "caf\xc3\xa9");
  EXPECT_EQ(decoded.bytes[3], "<|im_end|>");
  EXPECT_EQ(decoded.bytes[4], "\u20ac\u0120");  // not of the alphabet: as it is, whole
  EXPECT_TRUE(decoded.first.empty());
}

}  // namespace
}  // namespace hearth::text
