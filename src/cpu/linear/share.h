// What a kernel family of one instruction set gets: a rectangle of the product, checked and split. Private to linear/.
#pragma once
#include <cstdint>

#include "cpu/linear.h"
#include "cpu/linear/act.h"
#include "cpu/linear/heuristics.h"
#include "cpu/linear/layout.h"

namespace hearth::cpu {

constexpr int64_t kTokenBlock = 288;       // rows of x between two unpackings of a panel
constexpr int64_t kPanelBytes = 64 << 10;  // unpacked weights
constexpr int64_t kFoldBytes = 64 << 10;   // fp32 scales and biases of a panel
constexpr int64_t kTotalBytes = kTokenBlock * 64 * 4;

struct Share {
  Shape shape;
  Core core;
  int64_t N, K;
  int64_t block_begin, block_end;  // blocks of 32 rows of W
  int64_t m_begin, m_end;          // rows of x
  const uint8_t* blocks;
  const float* x;
  int64_t ldx;
  const std::byte* act;
  ActLayout layout;
  float* y;
  int64_t ldy;
  const float* bias;
  bool accumulate;
  std::byte* scratch;
  FetchAhead ahead;
};

struct LinearKernels {
  void (*quantize_s16)(const float* x, int64_t K, const ActLayout& layout, std::byte* row) noexcept;
  void (*quantize_s8)(const float* x, int64_t K, const ActLayout& layout, std::byte* row) noexcept;
  void (*run)(const Share& share) noexcept;
  bool pairs;  // the order of activations it reads (act.h)
};

extern const LinearKernels kLinearGeneric, kLinearAvx2, kLinearAvx512, kLinearAmx;

}  // namespace hearth::cpu
