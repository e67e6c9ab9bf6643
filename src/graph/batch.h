// What changes from step to step; a plan never bakes one of these numbers in (DESIGN 4.1).
#pragma once
#include <cstdint>
#include <span>

namespace hearth::graph {

// Pages of one KvGroup: entry [b * pages_max + j / P] holds positions j of sequence b; -1 where no page is (behind a
// window, beyond the end).
struct PageTable {
  std::span<const int32_t> pages;
  int64_t pages_max = 0;
};

enum class MaskKind : uint8_t { causal, full };

// Rows are packed: sequence b owns rows row_begin[b] .. row_begin[b + 1], no padding. Views; valid for one run.
// Row t of sequence b has the cache index kv_len[b] - T_b + t and sees cached index j when
//   causal: j <= its own;  full: j < kv_len[b];  a window W adds own - W < j.
struct BatchView {
  std::span<const int32_t> ids;        // [M]
  std::span<const int32_t> positions;  // [M] logical positions, for rope
  std::span<const int32_t> row_begin;  // [B + 1]
  std::span<const int32_t> kv_len;     // [B] cached positions after this step's append
  std::span<const PageTable> tables;   // one a KvGroup
  std::span<const int32_t> adapter;    // [B] adapter slot or -1; empty: none
  std::span<const int32_t> out_rows;   // packed rows for the head, ascending
  std::span<const MaskKind> masks;     // [B]; empty: causal

  int64_t M() const { return static_cast<int64_t>(ids.size()); }
  int64_t B() const { return static_cast<int64_t>(kv_len.size()); }
  MaskKind mask(int64_t b) const { return masks.empty() ? MaskKind::causal : masks[static_cast<size_t>(b)]; }
};

}  // namespace hearth::graph
