#include "text/grammar/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "text/grammar/points.h"
#include "text/grammar/program.h"
#include "text/tokenizer.h"

namespace hearth::text {

namespace grammar {

TokenTrie TokenTrie::build(std::vector<std::pair<std::string_view, Item>> texts) {
  std::sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.id, a.second.units) < std::tie(b.first, b.second.id, b.second.units);
  });
  TokenTrie trie;
  std::vector<uint32_t> path;
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) trie.end[path.back()] = static_cast<uint32_t>(trie.size());
  };
  std::string_view last;
  trie.items.reserve(texts.size());
  for (const auto& [text, item] : texts) {
    HEARTH_CHECK(!text.empty() && text.size() < 65536);
    size_t common = 0;
    while (common < std::min(last.size(), text.size()) && last[common] == text[common]) ++common;
    close(common);
    for (size_t i = common; i < text.size(); ++i) {
      path.push_back(static_cast<uint32_t>(trie.size()));
      trie.byte.push_back(static_cast<uint8_t>(text[i]));
      trie.depth.push_back(static_cast<uint16_t>(i + 1));
      trie.end.push_back(0);
      trie.item_first.push_back(static_cast<uint32_t>(trie.items.size()));
    }
    trie.items.push_back(item);
    trie.depth_max = std::max(trie.depth_max, text.size());
    last = text;
  }
  close(0);
  trie.item_first.push_back(static_cast<uint32_t>(trie.items.size()));
  return trie;
}

size_t TokenEffects::bytes() const {
  size_t n = 256 + inside.size() * 8 + few.size() * 4 + by_need.size() * 8 + tails.size() * 11 +
             tails.items.size() * sizeof(TokenTrie::Item);
  for (const auto& mask : ladder) n += mask.size() * 8;
  return n;
}

namespace {

constexpr size_t kLadder = 32;

// The automaton's edges as tables of 256, made for the states that a walk meets.
class Rows {
 public:
  explicit Rows(const Dfa& dfa) : dfa_(dfa), rows_(dfa.states(), kNone) {}
  int32_t step(uint32_t state, uint8_t byte) {
    if (rows_[state] == kNone) {
      rows_[state] = static_cast<uint32_t>(table_.size());
      table_.resize(table_.size() + 256, -1);
      for (uint32_t e = dfa_.first[state]; e < dfa_.first[state + 1]; ++e)
        for (int b = dfa_.edges[e].lo; b <= dfa_.edges[e].hi; ++b)
          table_[rows_[state] + static_cast<uint32_t>(b)] = static_cast<int32_t>(dfa_.edges[e].to);
    }
    return table_[rows_[state] + byte];
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  const Dfa& dfa_;
  std::vector<uint32_t> rows_;
  std::vector<int32_t> table_;
};

struct Walk {
  const TokenTrie& trie;
  const Dfa& dfa;
  bool counted;
  const ByteSet& follow;
  std::vector<uint64_t> inside;
  std::vector<std::pair<uint32_t, int32_t>> by_need;
  size_t alive = 0;
  std::vector<std::pair<std::string, TokenTrie::Item>> tails;

  void run(uint32_t start) {
    Rows rows(dfa);
    std::vector<uint32_t> state(trie.depth_max + 1), units(trie.depth_max + 1);
    std::vector<uint8_t> accepts(trie.depth_max + 1), path(trie.depth_max + 1);
    state[0] = start;
    for (size_t node = 0; node < trie.size();) {
      const size_t depth = trie.depth[node];
      const int32_t next = rows.step(state[depth - 1], trie.byte[node]);
      if (next < 0) {
        leave(node, depth, path, accepts, units);
        node = trie.end[node];
        continue;
      }
      path[depth] = trie.byte[node];
      const bool accept = dfa.accept[static_cast<size_t>(next)] != 0;
      accepts[depth] = accept;
      // A finished unit begins the next one.
      state[depth] = counted && accept ? 0 : static_cast<uint32_t>(next);
      units[depth] = units[depth - 1] + (counted && accept ? 1 : 0);
      for (const TokenTrie::Item& item : trie.at(node)) {
        inside[static_cast<size_t>(item.id) / 64] |= 1ull << (item.id % 64);
        ++alive;
        if (counted) by_need.push_back({units[depth] + (accept ? 0 : 1), item.id});
      }
      ++node;
    }
  }

 private:
  // The subtree of `node` has no place in the automaton: its tokens may leave wherever the way to it accepts.
  void leave(size_t node, size_t depth, const std::vector<uint8_t>& path, const std::vector<uint8_t>& accepts,
             const std::vector<uint32_t>& units) {
    for (size_t at = 1; at < depth; ++at) {
      if (!accepts[at] || !follow.contains(at + 1 == depth ? trie.byte[node] : path[at + 1])) continue;
      std::string tail(path.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                       path.begin() + static_cast<std::ptrdiff_t>(depth));
      for (size_t n = node; n < trie.end[node]; ++n) {
        tail.resize(trie.depth[n] - at - 1);
        tail += static_cast<char>(trie.byte[n]);
        for (const TokenTrie::Item& item : trie.at(n)) tails.push_back({tail, {item.id, units[at]}});
      }
    }
  }
};

TokenEffects effects_of(const TokenTrie& trie, size_t words, const Dfa& dfa, uint32_t state, bool counted,
                        const ByteSet& follow) {
  Walk walk{.trie = trie, .dfa = dfa, .counted = counted, .follow = follow};
  walk.inside.assign(words, 0);
  walk.run(state);
  TokenEffects e;
  if (walk.alive > words) e.inside = std::move(walk.inside);
  else
    for (size_t w = 0; w < words; ++w)
      for (uint64_t rest = walk.inside[w]; rest != 0; rest &= rest - 1)
        e.few.push_back(static_cast<int32_t>(w * 64 + static_cast<size_t>(std::countr_zero(rest))));
  if (counted) {
    e.by_need = std::move(walk.by_need);
    std::sort(e.by_need.begin(), e.by_need.end());
    if (!e.inside.empty()) {
      std::vector<uint64_t> mask(words, 0);
      size_t at = 0;
      for (uint32_t n = 0; n < kLadder; ++n) {
        for (; at < e.by_need.size() && e.by_need[at].first <= n; ++at)
          mask[static_cast<size_t>(e.by_need[at].second) / 64] |= 1ull << (e.by_need[at].second % 64);
        e.ladder.push_back(mask);
      }
    }
  }
  std::vector<std::pair<std::string_view, TokenTrie::Item>> tails(walk.tails.begin(), walk.tails.end());
  e.tails = TokenTrie::build(std::move(tails));
  return e;
}

constexpr size_t kCacheBytesMax = 64 << 20;

}  // namespace

}  // namespace grammar

using namespace grammar;

size_t VocabularyIndex::KeyHash::operator()(const Key& key) const {
  uint64_t hash = key.fingerprint ^ (uint64_t{key.state} << 1 | static_cast<uint64_t>(key.counted));
  for (const uint64_t w : key.follow.words) hash = (hash ^ w) * 0x9E3779B97F4A7C15ull;
  return static_cast<size_t>(hash ^ hash >> 31);
}

VocabularyIndex::VocabularyIndex(const Tokenizer& tokenizer, std::span<const int32_t> end_ids,
                                 std::span<const int32_t> spelled)
    : vocab_size_(tokenizer.vocab_size()), end_ids_(end_ids.begin(), end_ids.end()) {
  for (const auto& [ids, what] : {std::pair(end_ids, "end"), std::pair(spelled, "spelled")})
    for (const int32_t id : ids)
      if (id < 0 || id >= vocab_size_)
        fail(ErrorKind::invalid_argument, "{} id {} is outside of the vocabulary, V = {}", what, id, vocab_size_);
  std::sort(end_ids_.begin(), end_ids_.end());
  end_ids_.erase(std::unique(end_ids_.begin(), end_ids_.end()), end_ids_.end());
  usable_.assign(static_cast<size_t>(vocab_size_), false);
  for (int32_t id = 0; id < vocab_size_; ++id) {
    const std::string_view piece = tokenizer.piece_bytes(id, false);
    place_.push_back({static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(piece.size())});
    text_ += piece;
    const bool special = tokenizer.is_special(id) && std::find(spelled.begin(), spelled.end(), id) == spelled.end();
    usable_[static_cast<size_t>(id)] = !piece.empty() && piece.size() < 65536 && !special && !is_end(id);
  }
  std::vector<std::pair<std::string_view, TokenTrie::Item>> texts;
  for (int32_t id = 0; id < vocab_size_; ++id)
    if (usable(id)) texts.push_back({bytes(id), {id, 0}});
  trie_ = TokenTrie::build(std::move(texts));

  // Inside of JSON strings, where most tokens are: known before the first request.
  const auto character = std::make_shared<const Dfa>(json_character_dfa());
  ByteSet quote;
  quote.add('"');
  for (uint32_t s = 0; s < character->states(); ++s)
    if (character->has_edges(s)) effects(character, s, true, quote);
  made_ = true;
}

bool VocabularyIndex::is_end(int32_t id) const { return std::binary_search(end_ids_.begin(), end_ids_.end(), id); }

bool VocabularyIndex::usable(int32_t id) const {
  return id >= 0 && id < vocab_size_ && usable_[static_cast<size_t>(id)];
}

std::string_view VocabularyIndex::bytes(int32_t id) const {
  if (id < 0 || id >= vocab_size_)
    fail(ErrorKind::invalid_argument, "token id {} is outside of the vocabulary, V = {}", id, vocab_size_);
  const auto [at, size] = place_[static_cast<size_t>(id)];
  return std::string_view(text_).substr(at, size);
}

void VocabularyIndex::warm(const Grammar& grammar) const {
  // States that letters lead out of hold many tokens.
  constexpr int kStatesMax = 32;
  int made = 0;
  for (const Terminal& t : grammar.program().terminals)
    for (uint32_t s = 0; s < t.dfa->states() && s < 64 && made < kStatesMax; ++s) {
      const ByteSet next = t.dfa->first_bytes(s);
      int count = 0;
      for (const uint64_t w : next.words) count += std::popcount(w);
      if (count < 24) continue;
      effects(t.dfa, s, t.counted, t.follow);
      ++made;
    }
}

std::shared_ptr<const TokenEffects> VocabularyIndex::effects(const DfaPtr& dfa, uint32_t state, bool counted,
                                                             const ByteSet& follow) const {
  const Key key{dfa->fingerprint, state, counted, follow};
  {
    const std::lock_guard hold(lock_);
    const auto found = cache_.find(key);
    if (found != cache_.end() && (found->second.dfa == dfa || *found->second.dfa == *dfa)) return found->second.effects;
  }
  auto made = std::make_shared<const TokenEffects>(effects_of(trie_, words(), *dfa, state, counted, follow));
  const std::lock_guard hold(lock_);
  if (cache_bytes_ > kCacheBytesMax) {
    std::erase_if(cache_, [](const auto& item) { return !item.second.kept; });
    cache_bytes_ = 0;
  }
  if (made_) cache_bytes_ += made->bytes() + dfa->edges.size() * sizeof(Dfa::Edge) / dfa->states();
  cache_[key] = {dfa, made, !made_};
  return made;
}

}  // namespace hearth::text
