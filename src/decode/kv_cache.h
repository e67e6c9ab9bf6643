// Pages of the KV cache: who holds which page of which group. Pure bookkeeping; storage is the executor's.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/batch.h"
#include "graph/kv.h"
#include "graph/program.h"

namespace hearth::decode {

// Pages of one sequence: the ids that are cached and, by group, the page of every P positions (-1: given back).
// Owned by one engine; made and freed through KvCache.
struct Sequence {
  std::vector<int32_t> ids;                 // cached tokens, [length]
  std::vector<std::vector<int32_t>> pages;  // [groups][ceil(length / P)]
  int64_t length() const { return static_cast<int64_t>(ids.size()); }
};

// Reference counts by page. Engine thread only.
class KvCache {
 public:
  // storage must outlive the cache. groups as in the program. A sequence may hold its share of a window group's pages,
  // one of `sequences_max` shares, before it gives back what lies behind the window.
  KvCache(std::span<const graph::KvGroup> groups, graph::KvStorage& storage, int64_t sequences_max = 1);

  Sequence make() const;

  // Room for n more positions. Returns false, changing nothing, when some group has too few pages, free or wholly
  // behind the window of s. Those behind the window are given back, oldest first, when the pool or the share of s runs
  // out; until then a chat can go back to them. A last page that is shared is copied before it is written.
  bool reserve(Sequence& s, int64_t n);

  // After a step: the reserved positions hold these ids.
  void commit(Sequence& s, std::span<const int32_t> ids);

  // Forgets positions from `length` on. Positions that a window group has given back cannot be read again: see
  // reusable_length.
  void truncate(Sequence& s, int64_t length);

  // The longest prefix not above `wanted` from which evaluation can go on: with windows, the pages that the next
  // position sees must still be there; otherwise 0. There is nothing between: a shorter prefix sees older pages, which
  // were given back before, and what they held cannot be computed again without all positions before them.
  int64_t reusable_length(const Sequence& s, int64_t wanted) const;

  Sequence fork(const Sequence& s);  // shares all pages

  // A sequence of these ids with pages of its own for what the position behind them sees; the caller fills their bytes.
  // Absent, changing nothing, when some group has fewer than pages_seen() free ones.
  std::optional<Sequence> blank(std::span<const int32_t> ids);
  int64_t pages_seen(size_t group, int64_t length) const;

  void free(Sequence& s);

  // Pages of a group that reserve(s, n) would lack; 0: it succeeds as far as this group goes.
  int64_t missing(const Sequence& s, int64_t n, size_t group) const;

  // One more reference to a page, one less: for those who keep pages beside a sequence.
  void hold(size_t group, int32_t page) { ++count_[group][static_cast<size_t>(page)]; }
  void drop(size_t group, int32_t page);
  int32_t references(size_t group, int32_t page) const { return count_[group][static_cast<size_t>(page)]; }

  // Called on the engine thread when a group takes a page above all it ever took; pages are taken from 0 up.
  void on_first_use(std::function<void(size_t group, int32_t page)> call) { first_use_ = std::move(call); }

  std::span<const graph::KvGroup> groups() const { return groups_; }
  int64_t pages_free(size_t group) const { return static_cast<int64_t>(free_[group].size()); }
  int64_t pages_total(size_t group) const { return storage_.pages(static_cast<int32_t>(group)); }

 private:
  int32_t take(size_t group);
  bool shares_tail(const Sequence& s, int64_t n, size_t group) const;
  int64_t new_pages(const Sequence& s, int64_t n, size_t group) const;
  int64_t behind_window(const Sequence& s, size_t group) const;

  std::vector<graph::KvGroup> groups_;
  std::vector<int64_t> share_;  // pages that a sequence may hold, by group
  graph::KvStorage& storage_;
  std::vector<std::vector<int32_t>> free_;   // by group, a stack
  std::vector<std::vector<int32_t>> count_;  // references by page
  std::vector<int32_t> used_;                // by group, pages that were ever taken
  std::function<void(size_t, int32_t)> first_use_;
};

// Pages that hold so many positions.
constexpr int64_t pages_of(int64_t positions) {
  return (positions + graph::kPagePositions - 1) / graph::kPagePositions;
}

// The first page of a group that the position behind `length` others sees.
constexpr int64_t first_page_seen(const graph::KvGroup& group, int64_t length) {
  const int64_t first = length - group.window + 1;
  return group.window == 0 || first < 0 ? 0 : first / graph::kPagePositions;
}

// Pages of a group that `positions` positions of one sequence need at most, given that a step appends up to `rows`
// rows.
int64_t pages_needed(const graph::KvGroup& group, int64_t positions, int64_t rows);

}  // namespace hearth::decode
