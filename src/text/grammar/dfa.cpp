#include "text/grammar/dfa.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/limit_error.h"
#include "text/grammar/grammar.h"

namespace hearth::text::grammar {

void Budget::spend(int64_t units) {
  left_ -= units;
  if (left_ < 0)
    fail_limit(kGrammarWork, "the grammar is too large: it would take more than {} steps to compile", total_);
}

bool Dfa::matches(std::string_view text) const {
  if (states() == 0) return false;
  int32_t state = 0;
  for (const char c : text) {
    state = step(static_cast<uint32_t>(state), static_cast<uint8_t>(c));
    if (state < 0) return false;
  }
  return accept[static_cast<size_t>(state)] != 0;
}

ByteSet Dfa::first_bytes(uint32_t state) const {
  ByteSet set;
  for (uint32_t e = first[state]; e < first[state + 1]; ++e) set.add(edges[e].lo, edges[e].hi);
  return set;
}

bool Dfa::prefix_free() const {
  if (states() == 0 || accept[0]) return false;
  for (uint32_t s = 0; s < states(); ++s)
    if (accept[s] && has_edges(s)) return false;
  return true;
}

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xFF51AFD7ED558CCDull;
}

struct SetHash {
  size_t operator()(const std::vector<uint32_t>& set) const {
    uint64_t hash = set.size();
    for (const uint32_t s : set) hash = mix(hash, s);
    return static_cast<size_t>(hash ^ hash >> 29);
  }
};

void join_edges(std::vector<Dfa::Edge>& edges) {
  std::sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) { return a.lo < b.lo; });
  size_t kept = 0;
  for (const Dfa::Edge& e : edges) {
    if (kept > 0 && edges[kept - 1].to == e.to && edges[kept - 1].hi + 1 == e.lo) edges[kept - 1].hi = e.hi;
    else edges[kept++] = e;
  }
  edges.resize(kept);
}

// States from which an accepting one is reached, backwards over the edges.
std::vector<uint8_t> useful(const std::vector<std::vector<Dfa::Edge>>& out, const std::vector<uint8_t>& accept) {
  std::vector<uint32_t> begin(out.size() + 2, 0);
  for (const auto& edges : out)
    for (const Dfa::Edge& e : edges) ++begin[e.to + 2];
  for (size_t s = 2; s < begin.size(); ++s) begin[s] += begin[s - 1];
  std::vector<uint32_t> sources(begin.back());
  for (uint32_t s = 0; s < out.size(); ++s)
    for (const Dfa::Edge& e : out[s]) sources[begin[e.to + 1]++] = s;
  std::vector<uint8_t> marked(accept);
  std::vector<uint32_t> queue;
  for (uint32_t s = 0; s < out.size(); ++s)
    if (marked[s]) queue.push_back(s);
  for (size_t at = 0; at < queue.size(); ++at)
    for (uint32_t i = begin[queue[at]]; i < begin[queue[at] + 1]; ++i)
      if (!marked[sources[i]]) {
        marked[sources[i]] = 1;
        queue.push_back(sources[i]);
      }
  return marked;
}

}  // namespace

Dfa finish_dfa(std::vector<std::vector<Dfa::Edge>> out, const std::vector<uint8_t>& accept) {
  Dfa dfa;
  dfa.first.push_back(0);
  const std::vector<uint8_t> alive = useful(out, accept);
  if (out.empty() || !alive[0]) return dfa;
  constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> number(out.size(), kNone), order{0};
  number[0] = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    std::vector<Dfa::Edge> kept;
    for (const Dfa::Edge& e : out[order[at]])
      if (alive[e.to]) kept.push_back(e);
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.lo < b.lo; });
    for (Dfa::Edge& e : kept) {
      if (number[e.to] == kNone) {
        number[e.to] = static_cast<uint32_t>(order.size());
        order.push_back(e.to);
      }
      e.to = number[e.to];
    }
    join_edges(kept);
    dfa.edges.insert(dfa.edges.end(), kept.begin(), kept.end());
    dfa.first.push_back(static_cast<uint32_t>(dfa.edges.size()));
    dfa.accept.push_back(accept[order[at]] ? 1 : 0);
  }
  uint64_t hash = dfa.accept.size();
  for (const uint8_t a : dfa.accept) hash = mix(hash, a);
  for (const uint32_t f : dfa.first) hash = mix(hash, f);
  for (const Dfa::Edge& e : dfa.edges) hash = mix(hash, uint64_t{e.to} << 16 | static_cast<uint64_t>(e.lo << 8 | e.hi));
  dfa.fingerprint = hash;
  return dfa;
}

void Nfa::copy(const Dfa& dfa, uint32_t from, uint32_t to) {
  if (dfa.states() == 0) return;
  const uint32_t base = states_;
  states_ += dfa.states();
  jump(from, base);
  for (uint32_t s = 0; s < dfa.states(); ++s) {
    for (uint32_t e = dfa.first[s]; e < dfa.first[s + 1]; ++e)
      edge(base + s, dfa.edges[e].lo, dfa.edges[e].hi, base + dfa.edges[e].to);
    if (dfa.accept[s]) jump(base + s, to);
  }
}

namespace {

// Edges or jumps grouped by the state that they leave.
template <class Item, class From>
std::vector<uint32_t> group(std::vector<Item>& items, uint32_t states, const From& from) {
  std::stable_sort(items.begin(), items.end(), [&](const Item& a, const Item& b) { return from(a) < from(b); });
  std::vector<uint32_t> first(states + 1, 0);
  for (const Item& item : items) ++first[from(item) + 1];
  for (uint32_t s = 0; s < states; ++s) first[s + 1] += first[s];
  return first;
}

}  // namespace

std::optional<Dfa> Nfa::determinize(uint32_t start, uint32_t accept, uint32_t states_max, Budget& budget) const {
  std::vector<Edge> edges = edges_;
  std::vector<std::pair<uint32_t, uint32_t>> jumps = jumps_;
  const std::vector<uint32_t> edge_first = group(edges, states_, [](const Edge& e) { return e.from; });
  const std::vector<uint32_t> jump_first = group(jumps, states_, [](const auto& j) { return j.first; });
  budget.spend(static_cast<int64_t>(edges.size() + jumps.size() + states_));

  // Bytes that no edge tells apart are one class.
  std::array<bool, 257> cut{};
  for (const Edge& e : edges) cut[e.lo] = cut[static_cast<size_t>(e.hi) + 1] = true;
  std::array<uint8_t, 256> class_of{};
  std::vector<std::pair<uint8_t, uint8_t>> classes;
  for (int b = 0; b < 256; ++b) {
    if (b == 0 || cut[static_cast<size_t>(b)]) classes.push_back({static_cast<uint8_t>(b), static_cast<uint8_t>(b)});
    classes.back().second = static_cast<uint8_t>(b);
    class_of[static_cast<size_t>(b)] = static_cast<uint8_t>(classes.size() - 1);
  }

  std::vector<uint32_t> stamp(states_, 0), open;
  uint32_t round = 0;
  const auto closure = [&](std::vector<uint32_t> seeds) {
    ++round;
    std::vector<uint32_t> set;
    open = std::move(seeds);
    int64_t seen = 0;
    while (!open.empty()) {
      const uint32_t s = open.back();
      open.pop_back();
      if (stamp[s] == round) continue;
      stamp[s] = round;
      ++seen;
      if (s == accept || edge_first[s] < edge_first[s + 1]) set.push_back(s);
      for (uint32_t j = jump_first[s]; j < jump_first[s + 1]; ++j) open.push_back(jumps[j].second);
    }
    budget.spend(seen + static_cast<int64_t>(set.size()));
    std::sort(set.begin(), set.end());
    return set;
  };

  std::unordered_map<std::vector<uint32_t>, uint32_t, SetHash> numbers;
  std::vector<const std::vector<uint32_t>*> sets;
  std::vector<std::vector<Dfa::Edge>> out;
  std::vector<uint8_t> accepts;
  const auto number_of = [&](std::vector<uint32_t> set) {
    const auto [found, made] = numbers.try_emplace(std::move(set), static_cast<uint32_t>(sets.size()));
    if (made) {
      sets.push_back(&found->first);
      budget.spend(16 + static_cast<int64_t>(found->first.size()));
    }
    return found->second;
  };
  number_of(closure({start}));
  std::vector<std::pair<uint8_t, uint32_t>> moves;  // class, target
  for (size_t at = 0; at < sets.size(); ++at) {
    if (sets.size() > states_max) return std::nullopt;
    moves.clear();
    bool ends = false;
    for (const uint32_t s : *sets[at]) {
      ends = ends || s == accept;
      for (uint32_t e = edge_first[s]; e < edge_first[s + 1]; ++e)
        for (int c = class_of[edges[e].lo]; c <= class_of[edges[e].hi]; ++c)
          moves.push_back({static_cast<uint8_t>(c), edges[e].to});
    }
    budget.spend(static_cast<int64_t>(moves.size()));
    std::sort(moves.begin(), moves.end());
    moves.erase(std::unique(moves.begin(), moves.end()), moves.end());
    std::vector<Dfa::Edge> leaving;
    std::vector<uint32_t> last_targets;
    uint32_t last_number = 0;
    for (size_t i = 0; i < moves.size();) {
      size_t end = i;
      std::vector<uint32_t> targets;
      for (; end < moves.size() && moves[end].first == moves[i].first; ++end) targets.push_back(moves[end].second);
      const auto [lo, hi] = classes[moves[i].first];
      if (targets != last_targets) {
        last_targets = targets;
        last_number = number_of(closure(std::move(targets)));
      }
      leaving.push_back({last_number, lo, hi});
      i = end;
    }
    join_edges(leaving);
    out.push_back(std::move(leaving));
    accepts.push_back(ends ? 1 : 0);
  }
  return finish_dfa(std::move(out), accepts);
}

Dfa minimized(const Dfa& dfa, Budget& budget) {
  if (dfa.states() < 2) return dfa;
  std::vector<uint32_t> part(dfa.accept.begin(), dfa.accept.end());
  uint32_t parts = 0;
  for (;;) {
    std::map<std::vector<uint32_t>, uint32_t> numbers;
    std::vector<uint32_t> next(dfa.states());
    budget.spend(static_cast<int64_t>(dfa.states() + dfa.edges.size()));
    for (uint32_t s = 0; s < dfa.states(); ++s) {
      std::vector<Dfa::Edge> edges(dfa.edges.begin() + dfa.first[s], dfa.edges.begin() + dfa.first[s + 1]);
      for (Dfa::Edge& e : edges) e.to = part[e.to];
      join_edges(edges);
      std::vector<uint32_t> signature{part[s]};
      for (const Dfa::Edge& e : edges) {
        signature.push_back(e.to);
        signature.push_back(static_cast<uint32_t>(e.lo << 8 | e.hi));
      }
      next[s] = numbers.try_emplace(std::move(signature), static_cast<uint32_t>(numbers.size())).first->second;
    }
    part = std::move(next);
    if (numbers.size() == parts) break;
    parts = static_cast<uint32_t>(numbers.size());
  }
  // State 0 keeps the first place: parts are numbered in order of appearance.
  std::vector<std::vector<Dfa::Edge>> out(parts);
  std::vector<uint8_t> accept(parts, 0);
  std::vector<uint8_t> done(parts, 0);
  for (uint32_t s = 0; s < dfa.states(); ++s) {
    if (done[part[s]]) continue;
    done[part[s]] = 1;
    accept[part[s]] = dfa.accept[s];
    for (uint32_t e = dfa.first[s]; e < dfa.first[s + 1]; ++e)
      out[part[s]].push_back({part[dfa.edges[e].to], dfa.edges[e].lo, dfa.edges[e].hi});
  }
  return finish_dfa(std::move(out), accept);
}

Dfa literal_dfa(std::string_view bytes) {
  std::vector<std::vector<Dfa::Edge>> out(bytes.size() + 1);
  std::vector<uint8_t> accept(bytes.size() + 1, 0);
  accept.back() = 1;
  for (uint32_t i = 0; i < bytes.size(); ++i) {
    const auto b = static_cast<uint8_t>(bytes[i]);
    out[i].push_back({i + 1, b, b});
  }
  return finish_dfa(std::move(out), accept);
}

Dfa bytes_dfa(const ByteSet& set) {
  std::vector<std::vector<Dfa::Edge>> out(2);
  for (int b = 0; b < 256; ++b)
    if (set.contains(static_cast<uint8_t>(b))) out[0].push_back({1, static_cast<uint8_t>(b), static_cast<uint8_t>(b)});
  return finish_dfa(std::move(out), {0, 1});
}

namespace {

using Pair = std::pair<int32_t, int32_t>;

// Both edges' common ranges; where b has none, b's next state is -1 (only if `keep`).
template <class Emit>
void step_pair(const Dfa& a, const Dfa& b, Pair at, bool keep, const Emit& emit) {
  const auto sa = static_cast<uint32_t>(at.first);
  for (uint32_t e = a.first[sa]; e < a.first[sa + 1]; ++e) {
    int from = a.edges[e].lo;
    const auto to_a = static_cast<int32_t>(a.edges[e].to);
    if (at.second >= 0)
      for (uint32_t f = b.first[static_cast<size_t>(at.second)]; f < b.first[static_cast<size_t>(at.second) + 1]; ++f) {
        const int lo = std::max<int>(from, b.edges[f].lo), hi = std::min<int>(a.edges[e].hi, b.edges[f].hi);
        if (lo > hi) continue;
        if (keep && from < lo) emit(static_cast<uint8_t>(from), static_cast<uint8_t>(lo - 1), Pair{to_a, -1});
        emit(static_cast<uint8_t>(lo), static_cast<uint8_t>(hi), Pair{to_a, static_cast<int32_t>(b.edges[f].to)});
        from = hi + 1;
      }
    if (keep && from <= a.edges[e].hi) emit(static_cast<uint8_t>(from), a.edges[e].hi, Pair{to_a, -1});
  }
}

}  // namespace

Dfa intersection(const Dfa& a, const Dfa& b, Budget& budget) {
  if (a.states() == 0 || b.states() == 0) return finish_dfa({}, {});
  return explore(
      Pair{0, 0}, [&](Pair at, const auto& emit) { step_pair(a, b, at, false, emit); },
      [&](Pair at) { return a.accept[static_cast<size_t>(at.first)] && b.accept[static_cast<size_t>(at.second)]; },
      budget);
}

Dfa difference(const Dfa& a, const Dfa& b, Budget& budget) {
  if (a.states() == 0 || b.states() == 0) return a;
  return explore(
      Pair{0, 0}, [&](Pair at, const auto& emit) { step_pair(a, b, at, true, emit); },
      [&](Pair at) {
        return a.accept[static_cast<size_t>(at.first)] && !(at.second >= 0 && b.accept[static_cast<size_t>(at.second)]);
      },
      budget);
}

}  // namespace hearth::text::grammar
