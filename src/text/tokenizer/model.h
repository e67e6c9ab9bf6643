// The step from a word to ids, one class a family. Immutable and re-entrant; the tables that they are made from must
// outlive them. Special pieces are never found in text here (the unknown piece stands for what no piece covers).
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer/tables.h"

namespace hearth::text {

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the ids of a word (a whole text for SentencePiece). O(n log n) in its bytes, without recursion.
  virtual void encode(std::string_view word, std::vector<int32_t>& out) const = 0;
};

struct ModelOptions {
  const TokenizerTables& tables;
  const std::vector<bool>& special;  // [V]
  bool words_are_bytes;              // bpe: words hold bytes, the pieces spell them in the byte alphabet
};

std::unique_ptr<const WordModel> make_bpe(const ModelOptions& options);
std::unique_ptr<const WordModel> make_sentencepiece_bpe(const ModelOptions& options);
std::unique_ptr<const WordModel> make_unigram(const ModelOptions& options);
std::unique_ptr<const WordModel> make_word_piece(const ModelOptions& options);

// Ids of the pieces <0x00> to <0xFF>, -1 where there is none.
std::vector<int32_t> byte_piece_ids(const TokenizerTables& tables);

}  // namespace hearth::text
