// The packed bytes of a Matrix, the one place that knows them (spec cpu-probes 3.1).
//
//   Header (128 bytes), then blocks of 32 rows, then nothing. Rows beyond N are zeros.
//   Plain formats: a block is [K][32] values of the stored type.
//   Integer formats: a block is K / span cells; a cell, of max(group, 32) k values, is
//     lead   K-quants, first cell of every 256 k: d [32] f16, and with a minimum dmin [32] f16;
//            u6: then for each set of 16 rows vectors S M H [16] of dwords, a dword a row (unit.h: pack_six)
//     data   for each set of 16 rows: for each unit of 32 k: vectors [16] of dwords, a dword a row
//     tail   scales [span / group][32], with a bias biases [span / group][32], elements as ScaleKind says; u6: none
//   In a unit k = 4 Q + b is byte b of quad Q = 0..7; the vectors hold the quads thus (h: bits above the low part):
//     2 bits  L0 L1           quad 4 j + t is bits 2 t of each byte of L j
//     3 bits  H L0 L1         bit 2 of quad Q is bit Q of each byte of H
//     4 bits  N0 N1 N2 N3     quads 2 i, 2 i + 1 are the low and high nibbles of N i
//     5 bits  H N0 N1 N2 N3   bit 4 of quad Q is bit Q of each byte of H
//     6 bits  H0 N0 N1 H1 N2 N3   bits 4-5 of quad 4 j + t are bits 2 t of each byte of H j
//     8 bits  B0 .. B7        quad Q is B Q
#pragma once
#include <cstdint>

#include "tensor/packed.h"

namespace hearth::cpu {

constexpr int64_t kBlockRows = 32, kSetRows = 16, kUnit = 32, kLeadSpan = 256;
constexpr int64_t kSixBytes = 3 * 64;  // six-bit scales and minima of 256 k, of a set

// How the tail holds scale and bias.
enum class ScaleKind : uint8_t {
  f16,
  bf16,
  f32,  // as they are, biases alike
  u8,   // scale = d * u8, bias = -(dmin * u8): q2_k
  u6,   // alike, six bits each, all of them in the lead: q4_k, q5_k
  i8,   // scale = d * i8, no bias: q6_k, q3_k, iq4_xs
};

enum class Plain : uint8_t { no, f32, f16, bf16 };

// What kernels need to know of a format. Table formats whose values are small integers count as integer formats:
// iq4_nl and iq4_xs as 8 bits with zero 128, mxfp4 as 5 bits with zero 16 (values doubled, scale halved).
struct Shape {
  Plain plain = Plain::no;
  int bits = 0, group = 0, zero = 0;  // zero: subtracted from q; 0 where there is a bias
  bool has_bias = false;
  ScaleKind scale = ScaleKind::f32;

  constexpr int span() const { return group < kUnit ? static_cast<int>(kUnit) : group; }
  constexpr int subs() const { return span() / group; }  // groups in a cell: 2 for groups of 16
  constexpr int units() const { return span() / static_cast<int>(kUnit); }
  constexpr int vectors() const { return bits; }  // of 64 bytes: 32 k * 16 rows * bits / 512
  constexpr bool has_lead() const { return scale >= ScaleKind::u8; }
  constexpr int scale_size() const {
    return scale == ScaleKind::u6 ? 0 : has_lead() ? 1 : scale == ScaleKind::f32 ? 4 : 2;
  }
  constexpr int64_t lead_bytes() const {
    if (!has_lead()) return 0;
    return kBlockRows * 2 * (has_bias ? 2 : 1) + (scale == ScaleKind::u6 ? 2 * kSixBytes : 0);
  }
  constexpr int64_t set_bytes() const { return int64_t{units()} * vectors() * 64; }
  constexpr int64_t scale_bytes() const { return kBlockRows * subs() * scale_size(); }
  constexpr int64_t tail_bytes() const { return scale_bytes() * (has_bias ? 2 : 1); }
  constexpr int64_t cell_bytes() const { return 2 * set_bytes() + tail_bytes(); }
  constexpr int64_t plain_size() const { return plain == Plain::f32 ? 4 : 2; }
  constexpr int64_t block_bytes(int64_t K) const {
    if (plain != Plain::no) return K * kBlockRows * plain_size();
    return K / span() * cell_bytes() + K / kLeadSpan * lead_bytes();
  }
  // Byte offset, inside a block, of the cell that holds k (of its lead where it has one).
  constexpr int64_t cell_offset(int64_t k) const {
    const int64_t lead = has_lead() ? (k + kLeadSpan - 1) / kLeadSpan * lead_bytes() : 0;
    return k / span() * cell_bytes() + lead;
  }
};

Shape shape_of(const PackedFormat& format);

constexpr int64_t blocks_of(int64_t N) { return (N + kBlockRows - 1) / kBlockRows; }

constexpr int64_t kHeaderBytes = 128;
struct Header {
  char magic[8];
  uint32_t version;
  uint8_t codec, bits, scale_type, zero;
  int32_t group, zeros;
  int64_t N, K, bytes;
};
static_assert(sizeof(Header) <= kHeaderBytes);

}  // namespace hearth::cpu
