#include "tensor/affine_quantizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace hearth {
namespace {

void store_scale(std::vector<std::byte>& out, DType type, int64_t index, float value) {
  std::byte* p = out.data() + index * static_cast<int64_t>(size_of(type));
  if (type == DType::f32) std::memcpy(p, &value, 4);
  else {
    const uint16_t bits = type == DType::f16 ? to_f16(value).bits : to_bf16(value).bits;
    std::memcpy(p, &bits, 2);
  }
}

}  // namespace

AffineGroup quantize_group(std::span<const float> w, int bits, uint8_t* q) noexcept {
  constexpr float kScaleMin = 1e-7f;
  const float n = static_cast<float>((1 << bits) - 1);
  float lo = std::numeric_limits<float>::infinity(), hi = -lo;
  for (const float x : w) {
    hi = std::max(hi, x);
    lo = std::min(lo, x);
  }
  const bool low_edge = std::fabs(lo) > std::fabs(hi);
  float scale = std::max((hi - lo) / n, kScaleMin), bias = 0;
  if (!low_edge) scale = -scale;
  const float edge = low_edge ? lo : hi;
  const float steps = std::rint(edge / scale);
  if (steps != 0) {
    scale = edge / steps;
    bias = edge;
  }
  for (size_t i = 0; i < w.size(); ++i) {
    const float level = std::max(0.0f, std::rint((w[i] - bias) / scale));  // in this order NaN becomes 0
    q[i] = static_cast<uint8_t>(std::min(level, n));
  }
  return {scale, bias};
}

void pack_affine(const uint8_t* q, int64_t count, int bits, std::byte* out) noexcept {
  for (int64_t k = 0; k < count; k += 8, q += 8, out += bits) {
    uint64_t word = 0;
    for (int j = 0; j < 8; ++j) word |= uint64_t{q[j]} << j * bits;
    std::memcpy(out, &word, static_cast<size_t>(bits));
  }
}

AffineTensor quantize_affine(std::span<const float> w, int64_t N, int64_t K, const PackedFormat& format) {
  if (format.codec != Codec::affine) fail(ErrorKind::invalid_argument, "cannot quantize to {}", name_of(format));
  if (!is_affine_width(format.bits) || !is_affine_group(format.group) || !is_affine_scale(format.scale_type))
    fail(ErrorKind::invalid_argument,
         "cannot quantize to {}: bits are 2 3 4 5 6 8, groups 32 64 128, scales f16 bf16 "
         "f32",
         name_of(format));
  if (N <= 0 || K <= 0 || K % format.group != 0)
    fail(ErrorKind::invalid_argument, "cannot quantize [{}, {}] to {}: K is no multiple of the group", N, K,
         name_of(format));
  int64_t size;
  if (__builtin_mul_overflow(N, K, &size) || w.size() != static_cast<size_t>(size))
    fail(ErrorKind::invalid_argument, "cannot quantize [{}, {}]: {} values were given", N, K, w.size());

  AffineTensor out{.format = format, .N = N, .K = K, .data = {}, .scales = {}, .biases = {}};
  const int64_t groups = size / format.group, group_bytes = format.group / 8 * format.bits;
  out.data.resize(static_cast<size_t>(groups * group_bytes));
  out.scales.resize(static_cast<size_t>(groups) * size_of(format.scale_type));
  out.biases.resize(out.scales.size());
  uint8_t q[128];
  for (int64_t g = 0; g < groups; ++g) {
    const auto group = w.subspan(static_cast<size_t>(g * format.group), static_cast<size_t>(format.group));
    for (size_t i = 0; i < group.size(); ++i)
      if (!std::isfinite(group[i])) {
        const int64_t at = g * format.group + static_cast<int64_t>(i);
        fail(ErrorKind::invalid_argument, "cannot quantize: value [{}, {}] is {}", at / K, at % K, group[i]);
      }
    const AffineGroup found = quantize_group(group, format.bits, q);
    pack_affine(q, format.group, format.bits, out.data.data() + g * group_bytes);
    store_scale(out.scales, format.scale_type, g, found.scale);
    store_scale(out.biases, format.scale_type, g, found.bias);
  }
  return out;
}

}  // namespace hearth
