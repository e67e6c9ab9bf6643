// Finite automata over bytes: what the regular parts of a grammar become. Internal to text/grammar.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::text::grammar {

// A set of byte values.
struct ByteSet {
  std::array<uint64_t, 4> words{};

  static ByteSet all() { return {{~0ull, ~0ull, ~0ull, ~0ull}}; }
  void add(uint8_t b) { words[b / 64] |= 1ull << (b % 64); }
  void add(uint8_t lo, uint8_t hi) {
    for (int b = lo; b <= hi; ++b) add(static_cast<uint8_t>(b));
  }
  bool contains(uint8_t b) const { return words[b / 64] >> (b % 64) & 1; }
  bool meets(const ByteSet& other) const {
    uint64_t any = 0;
    for (size_t i = 0; i < 4; ++i) any |= words[i] & other.words[i];
    return any != 0;
  }
  auto operator<=>(const ByteSet&) const = default;
};

// What making one grammar may cost (GrammarLimits::work): units of some nanoseconds and a few bytes each, the same on
// every machine. spend() throws LimitError once they are gone.
class Budget {
 public:
  explicit Budget(int64_t units) : total_(units), left_(units) {}
  void spend(int64_t units);

 private:
  int64_t total_, left_;
};

// Deterministic, start state 0, edges of a state by rising bytes. Trimmed: every state is reached and reaches an
// accepting one, so an automaton that still lives can always finish. No states: it accepts nothing.
struct Dfa {
  struct Edge {
    uint32_t to;
    uint8_t lo, hi;
    bool operator==(const Edge&) const = default;
  };
  std::vector<uint32_t> first;  // [states + 1] into edges
  std::vector<Edge> edges;
  std::vector<uint8_t> accept;  // [states]
  uint64_t fingerprint = 0;

  uint32_t states() const { return static_cast<uint32_t>(accept.size()); }
  int32_t step(uint32_t state, uint8_t byte) const {
    for (uint32_t e = first[state]; e < first[state + 1]; ++e)
      if (byte <= edges[e].hi) return byte >= edges[e].lo ? static_cast<int32_t>(edges[e].to) : -1;
    return -1;
  }
  bool has_edges(uint32_t state) const { return first[state] < first[state + 1]; }
  bool matches(std::string_view text) const;
  ByteSet first_bytes(uint32_t state) const;
  // No accepted string begins another one, and none is empty.
  bool prefix_free() const;
  bool operator==(const Dfa& other) const {
    return first == other.first && edges == other.edges && accept == other.accept;
  }
};
using DfaPtr = std::shared_ptr<const Dfa>;

// Thompson's automaton, built by GrammarBuilder and points.h.
class Nfa {
 public:
  uint32_t add_state() { return states_++; }
  void edge(uint32_t from, uint8_t lo, uint8_t hi, uint32_t to) { edges_.push_back({from, to, lo, hi}); }
  void jump(uint32_t from, uint32_t to) { jumps_.push_back({from, to}); }
  void copy(const Dfa& dfa, uint32_t from, uint32_t to);
  uint32_t states() const { return states_; }

  // Null when there would be more than states_max states.
  std::optional<Dfa> determinize(uint32_t start, uint32_t accept, uint32_t states_max, Budget& budget) const;

 private:
  struct Edge {
    uint32_t from, to;
    uint8_t lo, hi;
  };
  uint32_t states_ = 0;
  std::vector<Edge> edges_;
  std::vector<std::pair<uint32_t, uint32_t>> jumps_;
};

// States and edges in any order to a Dfa: trims, joins neighbouring edges, numbers states breadth first. out[s] are the
// disjoint edges of s.
Dfa finish_dfa(std::vector<std::vector<Dfa::Edge>> out, const std::vector<uint8_t>& accept);

// Merges states that no text tells apart. For small automata: quadratic in the states at worst.
Dfa minimized(const Dfa& dfa, Budget& budget);

Dfa literal_dfa(std::string_view bytes);
Dfa bytes_dfa(const ByteSet& set);

// Strings of both, or of a alone. Error{invalid_argument} through the budget when the product is too large.
Dfa intersection(const Dfa& a, const Dfa& b, Budget& budget);
Dfa difference(const Dfa& a, const Dfa& b, Budget& budget);

// The automaton whose states are the keys reached from `start`: step(key, emit) calls emit(lo, hi, next key) for
// disjoint ranges of bytes, accept(key) says whether a text may end there.
template <class Key, class Step, class Accept>
Dfa explore(const Key& start, const Step& step, const Accept& accept, Budget& budget) {
  std::map<Key, uint32_t> numbers{{start, 0}};
  std::vector<Key> keys{start};
  std::vector<std::vector<Dfa::Edge>> out;
  std::vector<uint8_t> accepts;
  for (size_t at = 0; at < keys.size(); ++at) {
    const Key key = keys[at];
    accepts.push_back(accept(key) ? 1 : 0);
    std::vector<Dfa::Edge> edges;
    step(key, [&](uint8_t lo, uint8_t hi, const Key& next) {
      const auto [found, made] = numbers.try_emplace(next, static_cast<uint32_t>(keys.size()));
      if (made) keys.push_back(next);
      edges.push_back({found->second, lo, hi});
      budget.spend(8);
    });
    out.push_back(std::move(edges));
    budget.spend(8);
  }
  return finish_dfa(std::move(out), accepts);
}

}  // namespace hearth::text::grammar
