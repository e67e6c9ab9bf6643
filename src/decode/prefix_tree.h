// What earlier requests left in the KV cache, found by ids: a radix tree a space (spec server 34, 35). Ids are compared
// one by one, never by a hash.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "decode/kv_cache.h"

namespace hearth::decode {

// Engine thread only. A node holds a run of ids and, by group, references to the pages that its positions lie in. The
// page where a node begins inside of one is the node's own, with its parent's positions copied in front: so a path's
// pages are, page by page, those of its deepest node that reaches into it.
class PrefixTree {
 public:
  // page_bytes: by group. All must outlive the tree. The clock says when a prefix was used last.
  PrefixTree(KvCache& cache, std::span<const int64_t> page_bytes, const Clock& clock = system_clock());
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The longest prefix of ids in that space, of at most `most` positions, from which evaluation can go on; it shares
  // the pages. Empty where there is none: with windows also when pages that the next position sees were given back.
  Sequence match(std::string_view space, std::span<const int32_t> ids, int64_t most);
  // The length of that prefix; touches nothing.
  int64_t match_length(std::string_view space, std::span<const int32_t> ids, int64_t most) const;

  // Keeps what s has cached; s stays the caller's. Pages that the tree gave up or never had are taken from s.
  void insert(std::string_view space, const Sequence& s);

  // Gives up leaves that free a page of the group, those used longest ago first, until it has `pages` free ones. False:
  // none is left.
  bool make_room(size_t group, int64_t pages);
  // The same until the tree refers to no more bytes. Each leaf that goes so is shown first, with all that lies before
  // it.
  void shrink(int64_t bytes);
  void on_evict(std::function<void(std::string_view space, const Sequence& s)> call) { evicts_ = std::move(call); }

  // Shows leaves that nobody used for so long, those used longest ago first, with all that lies before them. One that
  // goes, since it is kept elsewhere, is given up, and the next look is at what then ends there.
  enum class Demotion : uint8_t { stays, goes, enough };
  void demote(std::chrono::nanoseconds unused_for,
              const std::function<Demotion(std::string_view space, const Sequence& s)>& look);

  // Gives up all of a space: what stands for it is gone, an adapter that was unmounted.
  void forget(std::string_view space);

  int64_t bytes() const { return bytes_; }      // of the pages referred to; one that two nodes share counts once
  int64_t entries() const { return entries_; }  // nodes

 private:
  struct Node {
    Node* parent = nullptr;
    int64_t begin = 0;                                  // position of ids[0]
    std::vector<int32_t> ids;                           // empty at a root alone
    std::vector<std::vector<int32_t>> pages;            // [groups][pages that begin .. end lie in]; -1: given back
    std::map<int32_t, std::unique_ptr<Node>> children;  // by their first id
    uint64_t used = 0;                                  // the order of uses,
    std::chrono::nanoseconds used_at{};                 // and the time of the last one
    int64_t end() const { return begin + static_cast<int64_t>(ids.size()); }
  };
  struct Path {
    std::vector<Node*> nodes;  // without the root
    int64_t length = 0;        // of the match; may end inside the last node
  };

  Path walk(std::string_view space, std::span<const int32_t> ids, int64_t most) const;
  Sequence pages_along(const Path& path, std::span<const int32_t> ids) const;
  void split(Node& node, int64_t at);
  void mend(Node& node, const Sequence& s);
  void refer(size_t group, int32_t page);
  void release(size_t group, int32_t page);
  void note_use(Node& node);
  void show(const Node& leaf, const std::function<void(std::string_view space, const Sequence& s)>& to) const;
  Node* remove(Node* leaf);  // returns the parent if that is a leaf now
  template <class Worth, class Enough>
  bool drop_leaves(const Worth& worth, const Enough& enough);

  KvCache& cache_;
  const Clock& time_;
  std::vector<int64_t> page_bytes_;
  std::vector<std::vector<int32_t>> nodes_;  // that refer to a page, by group
  std::map<std::string, Node, std::less<>> roots_;
  std::function<void(std::string_view space, const Sequence& s)> evicts_;
  uint64_t clock_ = 0;
  int64_t bytes_ = 0, entries_ = 0;
};

}  // namespace hearth::decode
