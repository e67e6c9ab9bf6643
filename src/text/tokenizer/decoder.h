// Pieces to bytes: the steps of a decoder, applied to every piece once, when a tokenizer is made.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tables.h"

namespace hearth::text {

// Byte strings by number, one behind the other in one block.
class StringTable {
 public:
  void reserve(size_t count, size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }
  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  // Ends the next string behind what the caller has appended to open().
  std::string& open() { return bytes_; }
  void close() { ends_.push_back(bytes_.size()); }

  bool empty() const { return ends_.empty(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

struct DecodedPieces {
  StringTable bytes;             // [V] behind other pieces
  StringTable first;             // [V] with nothing before; empty when that makes no difference
  bool drop_last_space = false;  // a space that ends the last piece stands for an end of word, not for text
};

// Throws Error{invalid_argument} for an order of steps that cannot be applied piece by piece.
DecodedPieces decode_pieces(const std::vector<std::string>& pieces, const std::vector<DecoderStep>& steps,
                            std::string_view what);

}  // namespace hearth::text
