// Finds added tokens in a text: leftmost, then longest.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_range.h"
#include "text/tokenizer/byte_trie.h"
#include "text/tokenizer/tables.h"

namespace hearth::text {

struct Section {
  std::string_view text;  // empty when there is an id
  int32_t id;             // -1: text for the model
  bool at_start;          // begins where the searched text begins
};

// Immutable; any thread.
class AddedTokens {
 public:
  // Spelling (not empty, none twice) and token. Neither is owned: both must outlive this.
  struct Entry {
    std::string_view spelling;
    const AddedToken* token;
  };
  explicit AddedTokens(const std::vector<Entry>& entries);

  // Appends the sections of text, in order; sections of text are never empty. Without `specials`, special tokens are
  // passed over as if they were text; with them, those that take a byte of `quoted` (ascending, disjoint).
  void find(std::string_view text, bool specials, std::span<const ByteRange> quoted, std::vector<Section>& out) const;

  bool any_special() const;

 private:
  struct Found {
    const AddedToken* token;  // null: none, the search goes on at `end`
    size_t end;
  };
  Found token_at(std::string_view text, size_t at, bool specials, std::span<const ByteRange> quoted) const;

  std::vector<const AddedToken*> tokens_;
  ByteTrie trie_;
  std::array<bool, 256> begins_{};
};

}  // namespace hearth::text
