// Collects pieces by id and by spelling while a file is read, and checks what all formats check alike.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/tokenizer/piece_index.h"
#include "text/tokenizer/tables.h"

namespace hearth::text {

class VocabularyBuilder {
 public:
  // `expected`: about how many pieces the file holds; ids may not lie far beyond.
  VocabularyBuilder(TokenizerTables& tables, size_t expected)
      : t_(tables), expected_(expected), index_(tables.pieces, expected) {}

  // For tables that have pieces already.
  static VocabularyBuilder of(TokenizerTables& tables);

  // Throws Error{corrupt_file} for an id outside of [0, 2 * expected + 65536), an id or a spelling that is taken, an
  // empty piece.
  void add(int64_t id, std::string_view piece);

  // The id of a spelling, or nothing.
  std::optional<int32_t> find(std::string_view piece) const;

  // Throws Error{corrupt_file} "<what>: <role> ... is not in the vocabulary".
  int32_t require(std::string_view piece, std::string_view role) const;

  // Appends the merge of two pieces. Throws Error{corrupt_file} when a part or the joined piece is unknown.
  void add_merge(std::string_view left, std::string_view right);
  // "a b": two pieces with one space between.
  void add_merge(std::string_view pair);

 private:
  TokenizerTables& t_;
  size_t expected_;
  PieceIndex index_;
  std::string joined_;
};

void add_end_id(TokenizerTables& tables, int32_t id);

}  // namespace hearth::text
