// Pieces to bytes: the steps of a decoder, applied to every piece once, when a tokenizer is made.
#pragma once
#include <string>
#include <vector>

#include "text/tokenizer/tables.h"

namespace hearth::text {

struct DecodedPieces {
  std::vector<std::string> bytes;  // [V] behind other pieces
  std::vector<std::string> first;  // [V] with nothing before; empty when that makes no difference
  bool drop_last_space = false;    // a space that ends the last piece stands for an end of word, not for text
};

// Throws Error{invalid_argument} for an order of steps that cannot be applied piece by piece.
DecodedPieces decode_pieces(const std::vector<std::string>& pieces, const std::vector<DecoderStep>& steps,
                            std::string_view what);

}  // namespace hearth::text
