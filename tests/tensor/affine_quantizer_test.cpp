#include "tensor/affine_quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "vectors/read.h"

namespace hearth {
namespace {

TEST(AffineQuantizer, equals_mlx) {
  const test::Vectors vectors("tensor.hvec");
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      for (const DType type : {DType::f16, DType::bf16, DType::f32}) {
        const PackedFormat format{Codec::affine, bits, group, type};
        const std::string name = name_of(format);
        const AffineTensor got = quantize_affine(vectors.get<float>(name + ".w"), 4, 2 * group, format);
        EXPECT_EQ(got.data, vectors.get<std::byte>(name + ".q")) << name;
        EXPECT_EQ(got.scales, vectors.get<std::byte>(name + ".scales")) << name;
        EXPECT_EQ(got.biases, vectors.get<std::byte>(name + ".biases")) << name;
      }
}

TEST(AffineQuantizer, packing_and_unpacking_are_inverse) {
  std::mt19937 random(3);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    std::vector<uint8_t> q(256), back(256);
    for (uint8_t& v : q) v = static_cast<uint8_t>(random() & ((1u << bits) - 1));
    std::vector<std::byte> stream(static_cast<size_t>(32 * bits));
    pack_affine(q.data(), 256, bits, stream.data());
    const std::vector<std::byte> scales(32);
    float scale[4], bias[4];
    unpack_row({{Codec::affine, bits, 64, DType::f32}, 1, 256, stream, scales, scales}, 0, back.data(), scale, bias);
    EXPECT_EQ(q, back) << bits;
  }
}

TEST(AffineQuantizer, errors_stay_below_half_a_step) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (int trial = 0; trial < 200; ++trial) {
      float w[64];
      uint8_t q[64];
      for (float& x : w) x = normal(random);
      const AffineGroup group = quantize_group(w, bits, q);
      // One extreme lies on a level exactly, so the other may fall up to a step outside the range.
      for (int i = 0; i < 64; ++i) {
        const bool clamped = q[i] == 0 || q[i] == (1 << bits) - 1;
        const float error = std::fabs(group.scale * static_cast<float>(q[i]) + group.bias - w[i]);
        ASSERT_LE(error, std::fabs(group.scale) * (clamped ? 1.0f : 0.5f) * 1.0001f)
            << bits << " " << trial << " " << i;
      }
    }
}

TEST(AffineQuantizer, degenerate_groups) {
  uint8_t q[32];
  std::vector<float> w(32, 0.0f);
  AffineGroup group = quantize_group(w, 4, q);
  EXPECT_EQ(group.scale, -1e-7f);
  EXPECT_EQ(group.bias, 0.0f);
  EXPECT_EQ(q[0], 0);

  w.assign(32, -2.5f);
  group = quantize_group(w, 4, q);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(group.scale * static_cast<float>(q[i]) + group.bias, -2.5f);

  w.assign(32, std::numeric_limits<float>::quiet_NaN());
  w[1] = 1;
  w[2] = -3;
  group = quantize_group(w, 4, q);
  EXPECT_EQ(group.bias, -3.0f);
  EXPECT_EQ(q[0], 0);
  EXPECT_EQ(q[2], 0);
}

std::string refusal(std::span<const float> w, int64_t N, int64_t K, const PackedFormat& format) {
  try {
    quantize_affine(w, N, K, format);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    return e.what();
  }
  return "accepted";
}

TEST(AffineQuantizer, refuses_what_it_cannot_represent) {
  const PackedFormat format{Codec::affine, 4, 32, DType::bf16};
  std::vector<float> w(128, 1.0f);
  EXPECT_EQ(refusal(w, 2, 64, format), "accepted");
  EXPECT_EQ(refusal(w, 2, 63, format), "cannot quantize [2, 63] to affine4_g32_bf16: K is no multiple of the group");
  EXPECT_EQ(refusal(w, 3, 64, format), "cannot quantize [3, 64]: 128 values were given");
  EXPECT_EQ(refusal(w, 2, 64, {Codec::q4_0, 0, 0, DType::f32}), "cannot quantize to q4_0");
  EXPECT_EQ(refusal(w, 2, 64, {Codec::affine, 7, 32, DType::bf16}),
            "cannot quantize to affine7_g32_bf16: bits are 2 3 4 5 6 8, groups 32 64 128, scales f16 bf16 f32");
  w[70] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(w, 2, 64, format), "cannot quantize: value [1, 6] is inf");
}

}  // namespace
}  // namespace hearth
