// What users write yields no special token, whatever the tokenizer's file says: the unknown piece and the pieces of
// single bytes excepted.
#pragma once
#include <string_view>

#include "text/tokenizer.h"
#include "text/tokenizer/byte_alphabet.h"

namespace hearth::text {

inline void check_quoted(const Tokenizer& tokenizer, std::optional<int32_t> unk, std::string_view text) {
  const ByteRange whole{0, text.size()};
  for (const int32_t id : tokenizer.encode(text, {.parse_special = true, .add_special = false, .quoted = {&whole, 1}}))
    if (tokenizer.is_special(id) && id != unk && !byte_of_piece(tokenizer.piece(id))) __builtin_trap();
}

}  // namespace hearth::text
