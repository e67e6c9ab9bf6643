// Random packed weights of every format, for tests: valid blocks with scales that keep values near `size`.
#pragma once
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tensor/packed.h"

namespace hearth::testing {

struct OwnedTensor {
  PackedFormat format;
  int64_t N = 0, K = 0;
  std::vector<std::byte> data, scales, biases;

  PackedTensor view() const { return {format, N, K, data, scales, biases}; }
};

inline PackedFormat affine_format(int bits, int group, DType scale_type) {
  return {.codec = Codec::affine, .bits = bits, .group = group, .scale_type = scale_type};
}

// The formats that kernels see as integers, and the plain ones. K must be a multiple of 256 for the last ones.
inline std::vector<PackedFormat> all_formats() {
  std::vector<PackedFormat> formats;
  for (const Codec c : {Codec::f32, Codec::f16, Codec::bf16, Codec::q4_0, Codec::q4_1, Codec::q5_0, Codec::q5_1,
                        Codec::q8_0, Codec::q4_k, Codec::q5_k, Codec::q6_k})
    formats.push_back({.codec = c});
  for (const int bits : {2, 3, 4, 5, 6, 8}) formats.push_back(affine_format(bits, 64, DType::bf16));
  for (const int group : {32, 64}) formats.push_back(affine_format(4, group, DType::f16));
  formats.push_back(affine_format(8, 64, DType::f16));
  formats.push_back(affine_format(4, 128, DType::f32));
  return formats;
}

namespace detail {
inline void put(std::byte* at, DType type, float x) {
  if (type == DType::f32) {
    std::memcpy(at, &x, 4);
    return;
  }
  const uint16_t bits = type == DType::f16 ? to_f16(x).bits : to_bf16(x).bits;
  std::memcpy(at, &bits, 2);
}
}  // namespace detail

inline OwnedTensor random_weights(std::mt19937& random, const PackedFormat& format, int64_t N, int64_t K,
                                  float size = 0.05f) {
  std::normal_distribution<float> normal(0.0f, size);
  std::uniform_real_distribution<float> near_one(0.5f, 1.5f);
  OwnedTensor w{.format = format, .N = N, .K = K, .data = {}, .scales = {}, .biases = {}};
  const int64_t bytes = row_bytes(format, K);
  w.data.resize(static_cast<size_t>(N * bytes));
  if (format.codec == Codec::f32 || format.codec == Codec::f16 || format.codec == Codec::bf16) {
    const DType type = format.codec == Codec::f32 ? DType::f32 : format.codec == Codec::f16 ? DType::f16 : DType::bf16;
    for (int64_t i = 0; i < N * K; ++i)
      detail::put(w.data.data() + i * static_cast<int64_t>(size_of(type)), type, normal(random));
    return w;
  }
  for (std::byte& b : w.data) b = static_cast<std::byte>(random());
  if (format.codec == Codec::affine) {
    const float s = 2 * size / static_cast<float>((1 << format.bits) - 1);
    const size_t count = static_cast<size_t>(N * K / format.group), width = size_of(format.scale_type);
    w.scales.resize(count * width);
    w.biases.resize(count * width);
    for (size_t i = 0; i < count; ++i) {
      const float scale = s * near_one(random);
      detail::put(w.scales.data() + i * width, format.scale_type, scale);
      detail::put(w.biases.data() + i * width, format.scale_type,
                  -scale * static_cast<float>((1 << format.bits) - 1) / 2);
    }
    return w;
  }
  // GGUF blocks: where the f16 fields stand, and the largest |q| that they multiply.
  struct Field {
    int64_t offset;
    float scale;
  };
  int64_t block = 0;
  std::vector<Field> fields;
  switch (format.codec) {
    case Codec::q4_0: block = 18, fields = {{0, size / 8}}; break;
    case Codec::q4_1: block = 20, fields = {{0, size / 8}, {2, -size}}; break;
    case Codec::q5_0: block = 22, fields = {{0, size / 16}}; break;
    case Codec::q5_1: block = 24, fields = {{0, size / 16}, {2, -size}}; break;
    case Codec::q8_0: block = 34, fields = {{0, size / 128}}; break;
    case Codec::q4_k: block = 144, fields = {{0, size / 8 / 32}, {2, size / 32}}; break;
    case Codec::q5_k: block = 176, fields = {{0, size / 16 / 32}, {2, size / 32}}; break;
    case Codec::q6_k: block = 210, fields = {{208, size / 32 / 64}}; break;
    default: break;
  }
  for (int64_t at = 0; at < N * bytes; at += block)
    for (const Field& f : fields) detail::put(w.data.data() + at + f.offset, DType::f16, f.scale * near_one(random));
  return w;
}

}  // namespace hearth::testing
