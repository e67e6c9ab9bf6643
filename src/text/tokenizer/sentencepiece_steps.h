// What tokenizer.model and GGUF files of SentencePiece models have in common.
#pragma once
#include <cstdint>
#include <string_view>

#include "text/tokenizer/model.h"
#include "text/tokenizer/tables.h"

namespace hearth::text {

// The number of a type in ModelProto and in tokenizer.ggml.token_type. Throws Error{corrupt_file} outside of 1 to 6.
PieceType piece_type(int64_t number, int64_t id, std::string_view what);

// Adds added tokens, normalizer and decoder to tables whose pieces and types are complete.
// Throws Error{corrupt_file} for a byte piece that is not spelled <0x00> to <0xFF>.
void add_sentencepiece_steps(TokenizerTables& tables, SentencePieceNormalizer normalizer);

}  // namespace hearth::text
