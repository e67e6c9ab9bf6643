// Matrix products with packed weights: y[m, n] = sum_k x[m, k] W[n, k]. The only matrix kernels of room cpu.
//
// A Matrix is repacked once (spec cpu-probes 3.1): blocks of 32 rows (two sets of 16), K in units of 32, a set's unit
// as vectors of a dword a row; scales and biases behind each group, so that a core reads strictly ascending addresses.
// The packed bytes are the same for every instruction set and may be cached on disk.
//
// Three cores. All vectorise along N and treat every row of x alone, so a result depends neither on M, nor on the
// number of members, nor (f32, s16, s8 alike) on the instruction set: bits are equal.
//   f32  x and the decoded weights in fp32, one FMA chain an output, k ascending: the faithful one, and the only one
//        for plain (f32, f16, bf16) weights.
//   s16  x as integers v = rint(x / sx), |v| <= 32512, one sx a row. isum_g = sum over group g of (q - zero) v, exact;
//        tot = fma(s_g, float(isum_g), tot), then with a bias tot = fma(b_g, float(X_g), tot), X_g = sum of v, groups
//        ascending; y = tot * sx. Bounded: x is off by at most sx / 2 = max|x| / 65024 an element.
//   s8   as s16 with |v| <= 127 and one sx every 32 values (`fast`): tot = fma(s_g * sx, float(isum), tot), then
//        tot = fma(b_g, sx * float(X), tot); groups of 64 and 128 count as groups of 32. x is off by at most sx / 2.
// A row of x with a NaN or an infinity gives NaN for all its outputs in s16 and s8. Rows whose largest |x| is below
// 32512 * 2^-100 (s8: 127 * 2^-100) are rounded to multiples of sx = 2^-100.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/team.h"
#include "cpu/isa.h"
#include "tensor/packed.h"

namespace hearth::cpu {

enum class Core : uint8_t { f32, s16, s8 };

// Weights of one linear, repacked; immutable, shared by threads. Copies share the bytes.
class Matrix {
 public:
  Matrix() = default;

  // Repacks `w`, on all members of `team` when one is given. Own memory with huge pages. `w` may go afterwards.
  // Throws Error{invalid_argument} when K is no multiple of the format's block or N or K is 0, Error{out_of_memory}.
  static Matrix pack(const PackedTensor& w, Team* team = nullptr);

  // The same in two steps, for a caller with one mapping or cache file for many matrices: pack_into() fills
  // packed_bytes() bytes, which are position independent and end in no pointer; view() opens them and keeps `owner`.
  // view() throws Error{corrupt_file} when head and extent disagree, Error{invalid_argument} when not 64-aligned.
  static int64_t packed_bytes(const PackedFormat& format, int64_t N, int64_t K);
  static void pack_into(const PackedTensor& w, std::span<std::byte> out, Team* team = nullptr);
  static Matrix view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  std::span<const std::byte> bytes() const { return bytes_; }
  int64_t N() const { return N_; }
  int64_t K() const { return K_; }
  const PackedFormat& format() const { return format_; }
  bool supports(Core core) const;  // plain weights: f32 alone; all others: every core

  // Row n as fp32, out [K]: equal to decode_row() of the packed tensor bit for bit. Any thread.
  void row(int64_t n, float* out) const;

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  PackedFormat format_;
  int64_t N_ = 0, K_ = 0;
};

// The form of x that s16 and s8 read: rows of act_row_bytes() bytes, 64-aligned, private to one Isa. One form serves
// every Matrix of that K (integer sums stand every 16 values). f32 reads x itself and needs none (0 bytes).
// K must be a multiple of 32 for s16 and s8.
int64_t act_row_bytes(Core core, int64_t K, Isa isa = best_isa());

// Fills rows [begin, end) of `act` from x [M, K], row stride ldx floats. Members may share the rows out. No throw.
struct QuantizeCall {
  Core core = Core::s16;  // s16 or s8
  int64_t K = 0;
  const float* x = nullptr;
  int64_t ldx = 0;
  std::byte* act = nullptr;
  Isa isa = best_isa();
};
void quantize_rows(const QuantizeCall& call, int64_t begin, int64_t end) noexcept;

//   x       [M, K] fp32, row stride ldx floats: read by f32 alone
//   act     M rows of act_row_bytes(): read by s16 and s8 alone
//   y       [M, N] fp32, row stride ldy floats; must not overlap x, act, scratch
//   bias    [N] fp32 or null: y = y + bias[n] after the product
//   accumulate  y[m, n] = y[m, n] + (product + bias)
//   scratch linear_scratch_bytes() bytes of this member alone, 64-aligned
struct LinearCall {
  const Matrix* w = nullptr;
  Core core = Core::f32;
  int64_t M = 0;
  const float* x = nullptr;
  int64_t ldx = 0;
  const std::byte* act = nullptr;
  float* y = nullptr;
  int64_t ldy = 0;
  const float* bias = nullptr;
  bool accumulate = false;
  std::byte* scratch = nullptr;
  Isa isa = best_isa();
};

// Bytes of scratch that one member needs for any M <= M_max with a matrix of this K, whatever its format.
int64_t linear_scratch_bytes(int64_t M_max, int64_t K);

// This member's share of the product; the members' shares are disjoint and cover y [M, N]. Which rows of W and x fall
// to a member is a pure function of (N, M, members) (linear/heuristics.h). No barrier inside: the caller puts one
// after.
void linear(const LinearCall& call, int member, int members) noexcept;

}  // namespace hearth::cpu
