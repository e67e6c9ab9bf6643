// How many tokens of an answer are reasoning (spec server 20, 21).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tools/answer_parser.h"

namespace hearth::text {

// Counts tokens that begin inside of reasoning; those of its markers are none. One answer an object, one thread at a
// time.
class ReasoningMeter {
 public:
  // As the answer itself is parsed; options.reasoning must be there.
  explicit ReasoningMeter(AnswerOptions options);

  // The text that one token adds, perhaps none.
  void push(std::string_view bytes);

  bool inside() const { return parser_.in_reasoning(); }
  // Bytes of the closing marker that the reasoning ends with now; 0 outside.
  size_t closing() const { return parser_.closing(); }
  // Where the reasoning ends with a part of its closing marker, the tokens of that part count until it is whole.
  int64_t tokens() const { return settled_ + static_cast<int64_t>(part_.size()); }

 private:
  std::string close_;
  AnswerParser parser_;
  std::vector<size_t> part_;  // bytes of the tokens that are a part of the closing marker, perhaps
  size_t part_bytes_ = 0;
  int64_t settled_ = 0;
};

}  // namespace hearth::text
