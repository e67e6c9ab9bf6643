#include "graph/kv.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "tensor/affine_quantizer.h"

namespace hearth::graph {
namespace {

// Index among a block's bf16 values of value d of the position in a slot.
int64_t bf16_at(KvPart part, int64_t Dh, int64_t slot, int64_t d) {
  return part == KvPart::key ? key_pair_at(slot, d) : slot * Dh + d;
}

bool quantized(KvFormat format) { return format == KvFormat::q8 || format == KvFormat::q4; }

int64_t value_bytes(KvFormat format, int64_t Dh) {
  switch (format) {
    case KvFormat::f32: return 4 * Dh;
    case KvFormat::bf16: return 2 * Dh;
    case KvFormat::q8: return Dh;
    case KvFormat::q4: return Dh / 2;
  }
  return 0;
}

// Bytes of one part (K or V) of one layer in one page.
int64_t part_bytes(const KvGroup& g) { return g.Hkv * kPagePositions * kv_row_bytes(g.format, g.Dh); }

}  // namespace

int64_t kv_row_bytes(KvFormat format, int64_t Dh) {
  return value_bytes(format, Dh) + (quantized(format) ? 2 * 2 * (Dh / kKvGroup) : 0);
}

int64_t kv_page_bytes(const KvGroup& group) {
  return static_cast<int64_t>(group.layers.size()) * 2 * part_bytes(group);
}

HostKv::HostKv(std::vector<KvGroup> groups, std::vector<KvLayer> layers, std::span<const int64_t> pages)
    : groups_(std::move(groups)), layers_(std::move(layers)) {
  HEARTH_CHECK(pages.size() == groups_.size(), "{} page counts for {} groups", pages.size(), groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    Arena arena{.data = nullptr, .pages = pages[g], .page_bytes = kv_page_bytes(groups_[g])};
    const size_t bytes = static_cast<size_t>(arena.pages * arena.page_bytes);
    void* data =
        bytes == 0 ? nullptr : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      for (const Arena& a : arenas_)
        if (a.data) munmap(a.data, static_cast<size_t>(a.pages * a.page_bytes));
      fail(ErrorKind::out_of_memory, "KV cache: {} pages of {} bytes cannot be mapped", arena.pages, arena.page_bytes);
    }
    if (data) madvise(data, bytes, MADV_HUGEPAGE);
    arena.data = static_cast<std::byte*>(data);
    arenas_.push_back(arena);
  }
}

HostKv::~HostKv() {
  for (const Arena& a : arenas_)
    if (a.data) munmap(a.data, static_cast<size_t>(a.pages * a.page_bytes));
}

int64_t HostKv::bytes() const {
  int64_t sum = 0;
  for (const Arena& a : arenas_) sum += a.pages * a.page_bytes;
  return sum;
}

void HostKv::copy_page(int32_t group, int32_t from, int32_t to) {
  const Arena& a = arenas_[static_cast<size_t>(group)];
  std::memcpy(a.data + to * a.page_bytes, a.data + from * a.page_bytes, static_cast<size_t>(a.page_bytes));
}

void HostKv::read_page(int32_t group, int32_t page, std::span<std::byte> to) const {
  const Arena& a = arenas_[static_cast<size_t>(group)];
  HEARTH_CHECK(std::cmp_equal(to.size(), a.page_bytes), "{} bytes for a page of {}", to.size(), a.page_bytes);
  std::memcpy(to.data(), a.data + page * a.page_bytes, to.size());
}

void HostKv::write_page(int32_t group, int32_t page, std::span<const std::byte> from) {
  const Arena& a = arenas_[static_cast<size_t>(group)];
  HEARTH_CHECK(std::cmp_equal(from.size(), a.page_bytes), "{} bytes for a page of {}", from.size(), a.page_bytes);
  std::memcpy(a.data + page * a.page_bytes, from.data(), from.size());
}

void HostKv::populate(int32_t group, int32_t page) noexcept {
  const Arena& arena = arenas_[static_cast<size_t>(group)];
  const auto unit = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(arena.data + page * arena.page_bytes) / unit * unit;
  const auto end = reinterpret_cast<uintptr_t>(arena.data + (page + 1) * arena.page_bytes);
  // Refused by kernels before 5.14 and where memory is short: the first write will see to it.
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

KvBlock HostKv::block(int32_t layer, KvPart part, int32_t page, int64_t head) const {
  const KvLayer& place = layers_[static_cast<size_t>(layer)];
  const KvGroup& g = groups_[static_cast<size_t>(place.group)];
  const Arena& a = arenas_[static_cast<size_t>(place.group)];
  std::byte* base = a.data + page * a.page_bytes + (2 * place.index + (part == KvPart::value)) * part_bytes(g);
  KvBlock block{.data = base + head * kPagePositions * value_bytes(g.format, g.Dh)};
  if (quantized(g.format)) {
    const int64_t groups = g.Dh / kKvGroup;  // of a row
    auto* scales = reinterpret_cast<uint16_t*>(base + g.Hkv * kPagePositions * value_bytes(g.format, g.Dh));
    block.scales = scales + head * kPagePositions * groups;
    block.biases = scales + (g.Hkv + head) * kPagePositions * groups;
  }
  return block;
}

void HostKv::store(int32_t layer, KvPart part, int32_t page, int64_t head, int64_t slot, const float* x) const {
  const KvGroup& g = group_of(layer);
  const KvBlock to = block(layer, part, page, head);
  std::byte* row = to.data + slot * value_bytes(g.format, g.Dh);
  switch (g.format) {
    case KvFormat::f32: std::memcpy(row, x, static_cast<size_t>(4 * g.Dh)); return;
    case KvFormat::bf16:
      for (int64_t d = 0; d < g.Dh; ++d) reinterpret_cast<bf16*>(to.data)[bf16_at(part, g.Dh, slot, d)] = to_bf16(x[d]);
      return;
    case KvFormat::q8:
    case KvFormat::q4: break;
  }
  const int bits = g.format == KvFormat::q8 ? 8 : 4;
  for (int64_t i = 0; i < g.Dh / kKvGroup; ++i) {
    uint8_t q[kKvGroup];
    const AffineGroup group = quantize_group({x + i * kKvGroup, kKvGroup}, bits, q);
    to.scales[slot * (g.Dh / kKvGroup) + i] = to_bf16(group.scale).bits;
    to.biases[slot * (g.Dh / kKvGroup) + i] = to_bf16(group.bias).bits;
    pack_affine(q, kKvGroup, bits, row + i * kKvGroup * bits / 8);
  }
}

void HostKv::load(int32_t layer, KvPart part, int32_t page, int64_t head, int64_t slot, float* x) const {
  const KvGroup& g = group_of(layer);
  const KvBlock from = block(layer, part, page, head);
  const std::byte* row = from.data + slot * value_bytes(g.format, g.Dh);
  switch (g.format) {
    case KvFormat::f32: std::memcpy(x, row, static_cast<size_t>(4 * g.Dh)); return;
    case KvFormat::bf16:
      for (int64_t d = 0; d < g.Dh; ++d)
        x[d] = to_float(reinterpret_cast<const bf16*>(from.data)[bf16_at(part, g.Dh, slot, d)]);
      return;
    case KvFormat::q8:
    case KvFormat::q4: break;
  }
  for (int64_t d = 0; d < g.Dh; ++d) {
    const int64_t group = slot * (g.Dh / kKvGroup) + d / kKvGroup;
    const uint8_t byte = static_cast<uint8_t>(row[g.format == KvFormat::q8 ? d : d / 2]);
    const int q = g.format == KvFormat::q8 ? byte : d % 2 ? byte >> 4 : byte & 15;
    x[d] = to_float(bf16{from.scales[group]}) * static_cast<float>(q) + to_float(bf16{from.biases[group]});
  }
}

void HostKv::poison(int32_t group, int32_t page) {
  const Arena& a = arenas_[static_cast<size_t>(group)];
  std::memset(a.data + page * a.page_bytes, 0xff, static_cast<size_t>(a.page_bytes));
}

}  // namespace hearth::graph
