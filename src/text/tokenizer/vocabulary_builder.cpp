#include "text/tokenizer/vocabulary_builder.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::text {

VocabularyBuilder VocabularyBuilder::of(TokenizerTables& tables) {
  VocabularyBuilder out(tables, tables.pieces.size());
  for (size_t id = 0; id < tables.pieces.size(); ++id)
    if (!tables.pieces[id].empty()) out.index_.insert(static_cast<int32_t>(id));
  return out;
}

void VocabularyBuilder::add(int64_t id, std::string_view piece) {
  const size_t ids_max = 2 * expected_ + 65536;
  if (id < 0 || static_cast<size_t>(id) >= ids_max)
    fail(ErrorKind::corrupt_file, "{}: piece \"{}\" has the id {}, with {} pieces ids end at {}", t_.what,
         piece.substr(0, 100), id, expected_, ids_max);
  if (piece.empty()) fail(ErrorKind::corrupt_file, "{}: piece {} is empty", t_.what, id);
  const auto at = static_cast<size_t>(id);
  if (at >= t_.pieces.size()) t_.pieces.resize(at + 1);
  if (!t_.pieces[at].empty())
    fail(ErrorKind::corrupt_file, "{}: pieces \"{}\" and \"{}\" have both the id {}", t_.what,
         t_.pieces[at].substr(0, 100), piece.substr(0, 100), id);
  t_.pieces[at] = piece;
  if (const int32_t other = index_.insert(static_cast<int32_t>(id)); other >= 0)
    fail(ErrorKind::corrupt_file, "{}: pieces {} and {} are both \"{}\"", t_.what, other, id, piece.substr(0, 100));
}

std::optional<int32_t> VocabularyBuilder::find(std::string_view piece) const {
  const int32_t id = index_.find(piece);
  return id < 0 ? std::nullopt : std::optional(id);
}

int32_t VocabularyBuilder::require(std::string_view piece, std::string_view role) const {
  const auto id = find(piece);
  if (!id) fail(ErrorKind::corrupt_file, "{}: {} \"{}\" is not in the vocabulary", t_.what, role, piece.substr(0, 100));
  return *id;
}

void VocabularyBuilder::add_merge(std::string_view left, std::string_view right) {
  const size_t rank = t_.merges.size();
  const auto part = [&](const std::string_view text) {
    const int32_t id = index_.find(text);
    if (id < 0)
      fail(ErrorKind::corrupt_file, "{}: merge {} names the unknown piece \"{}\"", t_.what, rank, text.substr(0, 100));
    return id;
  };
  const int32_t left_id = part(left), right_id = part(right);
  const std::string_view prefix = t_.continuing_subword_prefix;
  if (!prefix.empty() && right.starts_with(prefix)) right.remove_prefix(prefix.size());
  joined_.assign(left).append(right);
  const int32_t result = index_.find(joined_);
  if (result < 0)
    fail(ErrorKind::corrupt_file, "{}: merge {} gives the unknown piece \"{}\"", t_.what, rank, joined_.substr(0, 100));
  t_.merges.push_back({left_id, right_id, result});
}

void VocabularyBuilder::add_merge(std::string_view pair) {
  // A piece may begin with a space only where pieces are not spelled in the byte alphabet.
  const size_t space = pair.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == pair.size())
    fail(ErrorKind::corrupt_file, "{}: merge {} is \"{}\", two pieces and a space were expected", t_.what,
         t_.merges.size(), pair.substr(0, 100));
  add_merge(pair.substr(0, space), pair.substr(space + 1));
}

void add_end_id(TokenizerTables& tables, int32_t id) {
  if (std::find(tables.end_ids.begin(), tables.end_ids.end(), id) == tables.end_ids.end()) tables.end_ids.push_back(id);
}

}  // namespace hearth::text
