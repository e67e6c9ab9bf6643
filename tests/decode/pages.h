// KV pages without bytes, for tests of the bookkeeping.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "graph/kv.h"

namespace hearth::decode {

using graph::KvGroup;

// Pages without bytes: each has a content number, so that copies show.
class Pages final : public graph::KvStorage {
 public:
  explicit Pages(std::vector<int64_t> counts) : counts_(std::move(counts)) {}
  int64_t pages(int32_t group) const override { return counts_[static_cast<size_t>(group)]; }
  int64_t bytes() const override { return 0; }
  void copy_page(int32_t group, int32_t from, int32_t to) override {
    copies.push_back({group, from, to});
    content[{group, to}] = content[{group, from}];
  }
  void read_page(int32_t, int32_t, std::span<std::byte>) const override {}
  void write_page(int32_t, int32_t, std::span<const std::byte>) override {}
  void populate(int32_t, int32_t) noexcept override {}
  struct Copy {
    int32_t group, from, to;
  };
  std::vector<Copy> copies;
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> content;  // ids by slot

 private:
  std::vector<int64_t> counts_;
};

inline KvGroup group(int64_t window) { return {{0}, 1, 64, window, graph::KvFormat::bf16}; }
inline std::vector<int32_t> ids(int64_t n, int32_t first = 0) {
  std::vector<int32_t> list;
  for (int64_t i = 0; i < n; ++i) list.push_back(first + static_cast<int32_t>(i));
  return list;
}

}  // namespace hearth::decode
