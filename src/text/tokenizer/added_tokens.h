// Finds added tokens in a text: leftmost, then longest.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  // passed over as if they were text.
  void find(std::string_view text, bool specials, std::vector<Section>& out) const;

 private:
  std::vector<const AddedToken*> tokens_;
  ByteTrie trie_;
  std::array<bool, 256> begins_{};
};

}  // namespace hearth::text
