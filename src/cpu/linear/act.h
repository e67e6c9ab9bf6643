// Rows of quantized activations, as bytes. Every part starts at a multiple of 64; a row is
//   float sx                       s16 alone: the scale of the row
//   int32 sums [K / 16]            of v
//   float scales [K / 32]          s8 alone
//   data                           v in the order that the instruction set reads (below)
//   planes (generic, avx512, amx)  s16: bytes hi [K], then lo [K], v = 256 hi + lo; s8: v [K]
//   pairs (avx2)                   s16: int16 in the order k 0 2 1 3 of each four; s8: v [K], then such int16 [K]
#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "cpu/linear.h"

namespace hearth::cpu {

constexpr int kActMax16 = 32512, kActMax8 = 127;
constexpr float kActScaleMin = 0x1p-100f;

constexpr int64_t aligned64(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }

struct ActLayout {
  int64_t sums, scales, data;  // offsets
  int64_t plane;               // bytes from hi to lo (s16), from bytes to int16 (s8 of avx2)
  int64_t row;                 // bytes of a row
};

constexpr ActLayout act_layout(Core core, int64_t K, bool pairs) {
  ActLayout a{};
  a.sums = 64;
  a.scales = a.sums + aligned64(K / 16 * 4);
  a.data = a.scales + (core == Core::s8 ? aligned64(K / 32 * 4) : 0);
  a.plane = aligned64(K);
  a.row = a.data + a.plane * (core == Core::s16 ? 2 : pairs ? 3 : 1);
  return a;
}

}  // namespace hearth::cpu
