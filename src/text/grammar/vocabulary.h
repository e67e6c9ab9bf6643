// The vocabulary as grammars see it: which bytes each token adds to a text.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/grammar/dfa.h"

namespace hearth::text {

class Grammar;
class Tokenizer;

namespace grammar {

// Texts in a tree, nodes in preorder: what is behind a node lies behind it in memory, and a walk skips it in one step.
struct TokenTrie {
  struct Item {
    int32_t id;
    uint32_t units;  // of a tail: units of the counted automaton before it began
  };
  std::vector<uint8_t> byte;
  std::vector<uint16_t> depth;       // 1 at the top
  std::vector<uint32_t> end;         // first node behind the subtree
  std::vector<uint32_t> item_first;  // [nodes + 1]: texts that end at the node
  std::vector<Item> items;
  size_t depth_max = 0;

  size_t size() const { return byte.size(); }
  std::span<const Item> at(size_t node) const { return between(node, node + 1); }
  std::span<const Item> below(size_t node) const { return between(node, end[node]); }
  static TokenTrie build(std::vector<std::pair<std::string_view, Item>> texts);  // none empty

 private:
  std::span<const Item> between(size_t a, size_t b) const {
    return {items.data() + item_first[a], items.data() + item_first[b]};
  }
};

// What tokens do in one state of an automaton, whatever stands around it.
struct TokenEffects {
  std::vector<uint64_t> inside;  // bit per id: the token ends alive; empty when `few` lists them
  std::vector<int32_t> few;
  // Counted automata: alive tokens by rising number of units that they finish or begin, and masks of the first steps:
  // ladder[n] has the tokens that need at most n units.
  std::vector<std::pair<uint32_t, int32_t>> by_need;
  std::vector<std::vector<uint64_t>> ladder;
  // Tails of tokens that leave the automaton where it accepts, by what may follow.
  TokenTrie tails;

  size_t bytes() const;
};

}  // namespace grammar

// Immutable but for a cache with its own lock: any thread. The tokenizer is not needed afterwards.
class VocabularyIndex {
 public:
  // end_ids: what ends an answer; they are allowed in accepting states alone. Other special tokens are never allowed,
  // except `spelled`: markers of a dialect that a grammar spells out, which count as their text.
  // Throws Error{invalid_argument} for an id outside the vocabulary.
  VocabularyIndex(const Tokenizer& tokenizer, std::span<const int32_t> end_ids, std::span<const int32_t> spelled = {});

  int64_t vocab_size() const { return vocab_size_; }
  size_t words() const { return static_cast<size_t>(vocab_size_ + 63) / 64; }  // of a mask
  std::span<const int32_t> end_ids() const { return end_ids_; }
  bool is_end(int32_t id) const;
  bool usable(int32_t id) const;             // adds bytes to a constrained text
  std::string_view bytes(int32_t id) const;  // of any token, special ones as they are spelled

  // Makes beforehand what masks of this grammar need most and would take milliseconds in the token loop: for the thread
  // that prepares a request.
  void warm(const Grammar& grammar) const;

  // For the parts of text/grammar.
  const grammar::TokenTrie& trie() const { return trie_; }
  std::shared_ptr<const grammar::TokenEffects> effects(const grammar::DfaPtr& dfa, uint32_t state, bool counted,
                                                       const grammar::ByteSet& follow) const;

 private:
  struct Key {
    uint64_t fingerprint;
    uint32_t state;
    bool counted;
    grammar::ByteSet follow;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Entry {
    grammar::DfaPtr dfa;
    std::shared_ptr<const grammar::TokenEffects> effects;
    bool kept = false;  // outlives the cache's clearings: those of JSON strings
  };

  int64_t vocab_size_;
  std::string text_;
  std::vector<std::pair<uint32_t, uint32_t>> place_;  // [V] in text_
  std::vector<bool> usable_;
  std::vector<int32_t> end_ids_;
  grammar::TokenTrie trie_;
  mutable std::mutex lock_;
  mutable std::unordered_map<Key, Entry, KeyHash> cache_;
  mutable size_t cache_bytes_ = 0;  // of entries that are not kept
  bool made_ = false;               // from then on, entries are not kept
};

}  // namespace hearth::text
