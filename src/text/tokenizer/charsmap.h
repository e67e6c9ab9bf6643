// SentencePiece's precompiled character map: a double-array trie over byte strings (Aoe 1989, in the layout of
// darts-clone) whose values point into a table of NUL-ended replacements.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text {

class CharsmapTable {
 public:
  // u32 little-endian size of the trie in bytes, the trie, the replacements. Throws Error{corrupt_file}.
  CharsmapTable(std::string_view table, std::string_view what);

  struct Match {
    size_t size;  // bytes of the text that are replaced
    std::string_view replacement;
  };
  std::optional<Match> longest(std::string_view text) const { return find(text, true); }
  std::optional<Match> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Match> find(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace hearth::text
