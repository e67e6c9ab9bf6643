// The affine quantizer of weights and KV pages (DESIGN 6), equal to mlx.core.quantize on the CPU bit for bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/packed.h"

namespace hearth {

// fp32, before they are rounded to their storage type.
struct AffineGroup {
  float scale, bias;
};

// Quantizes one group of finite values. Per group, n = 2^bits - 1, lo and hi the extremes, rint to nearest even:
// s = max((hi - lo) / n, 1e-7); if |lo| > |hi| then e = lo, else e = hi and s = -s; i = rint(e / s); if i != 0 then
// s = e / i, b = e, else b = 0; q = clamp(rint((w - b) / s), 0, n). q uses the unrounded s and b.
//   w  the group, any length > 0     q  [w.size()], one value a byte     bits  2 3 4 5 6 8
// A NaN is passed over by the extremes and becomes q = 0. Any thread; allocates nothing.
AffineGroup quantize_group(std::span<const float> w, int bits, uint8_t* q) noexcept;

// Writes q [count] as the little-endian bit stream of DESIGN 6. count is a multiple of 8; out has count * bits / 8
// bytes.
void pack_affine(const uint8_t* q, int64_t count, int bits, std::byte* out) noexcept;

// An owned affine matrix.
struct AffineTensor {
  PackedFormat format;
  int64_t N = 0, K = 0;
  std::vector<std::byte> data, scales, biases;

  PackedTensor view() const { return {format, N, K, data, scales, biases}; }
};

// Quantizes w [N, K], row-major. Throws Error{invalid_argument} when the format is no affine one, w has another size,
// K is no multiple of the group, or a value is not finite (with its place).
AffineTensor quantize_affine(std::span<const float> w, int64_t N, int64_t K, const PackedFormat& format);

}  // namespace hearth
