// KV pages in host memory: storage shared by the reference and the CPU executor.
//
// A page holds P = 64 positions of every layer of its group. In each layer: K then V, each [Hkv, P, Dh] in the group's
// format; q8 and q4 add scales and biases [Hkv, P, Dh / 64] bf16 behind the values (quantizer of DESIGN 6 per group of
// 64 along Dh; q4 puts value d into nibble d % 2 of byte d / 2). K in bf16 lies as [Hkv, Dh / 2, P, 2]: q . k then goes
// over the positions side by side, d ascending, without turning anything round.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/program.h"

namespace hearth::graph {

// What an executor gives for its KV cache. Pages are numbered 0 .. pages - 1 in each group.
class KvStorage {
 public:
  virtual ~KvStorage() = default;
  virtual int64_t pages(int32_t group) const = 0;
  virtual int64_t bytes() const = 0;
  virtual void copy_page(int32_t group, int32_t from, int32_t to) = 0;

  // A page's bytes out and in, kv_page_bytes(group) of them, the same on every executor that stores the format so.
  // Between steps; read_page also from another thread while others run, of a page that nobody writes.
  virtual void read_page(int32_t group, int32_t page, std::span<std::byte> to) const = 0;
  virtual void write_page(int32_t group, int32_t page, std::span<const std::byte> from) = 0;

  // Has the system give the page its memory now and not at the first write; its bytes stay. Any thread, also while
  // others use the page. Nothing where pages always have theirs.
  virtual void populate(int32_t group, int32_t page) noexcept = 0;
};

int64_t kv_page_bytes(const KvGroup& group);        // all layers of the group, one page
int64_t kv_row_bytes(KvFormat format, int64_t Dh);  // values, scales and biases of one head and position

enum class KvPart : uint8_t { key, value };

// One head of one layer in one page: P rows. Rows of `data` are Dh values in the format; scales, biases: Dh / 64 a row.
struct KvBlock {
  std::byte* data = nullptr;
  uint16_t *scales = nullptr, *biases = nullptr;  // bf16 bits; null for f32, bf16
};

// Index among a block's bf16 keys of value d of the position in a slot.
constexpr int64_t key_pair_at(int64_t slot, int64_t d) { return 2 * (d / 2 * kPagePositions + slot) + d % 2; }

class HostKv final : public KvStorage {
 public:
  // pages[g] pages of group g, zeroed lazily by the system. Throws Error{out_of_memory}.
  HostKv(std::vector<KvGroup> groups, std::vector<KvLayer> layers, std::span<const int64_t> pages);
  ~HostKv() override;
  HostKv(const HostKv&) = delete;
  HostKv& operator=(const HostKv&) = delete;

  int64_t pages(int32_t group) const override { return arenas_[static_cast<size_t>(group)].pages; }
  int64_t bytes() const override;
  void copy_page(int32_t group, int32_t from, int32_t to) override;
  void read_page(int32_t group, int32_t page, std::span<std::byte> to) const override;
  void write_page(int32_t group, int32_t page, std::span<const std::byte> from) override;
  void populate(int32_t group, int32_t page) noexcept override;

  const KvGroup& group_of(int32_t layer) const {
    return groups_[static_cast<size_t>(layers_[static_cast<size_t>(layer)].group)];
  }
  int32_t group_index(int32_t layer) const { return layers_[static_cast<size_t>(layer)].group; }
  KvBlock block(int32_t layer, KvPart part, int32_t page, int64_t head) const;

  // One position of one head, through the format: x [Dh].
  void store(int32_t layer, KvPart part, int32_t page, int64_t head, int64_t slot, const float* x) const;
  void load(int32_t layer, KvPart part, int32_t page, int64_t head, int64_t slot, float* x) const;

  // Tests: fills every byte of a page with NaN patterns, so that a read past the end shows.
  void poison(int32_t group, int32_t page);

 private:
  struct Arena {
    std::byte* data = nullptr;
    int64_t pages = 0, page_bytes = 0;
  };
  std::vector<KvGroup> groups_;
  std::vector<KvLayer> layers_;
  std::vector<Arena> arenas_;
};

}  // namespace hearth::graph
