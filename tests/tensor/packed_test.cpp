#include "tensor/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "vectors/read.h"

namespace hearth {
namespace {

constexpr int kCodecs = static_cast<int>(Codec::mxfp4) + 1;

std::vector<PackedFormat> all_formats() {
  std::vector<PackedFormat> all;
  for (int codec = 0; codec < kCodecs; ++codec)
    if (static_cast<Codec>(codec) != Codec::affine) all.push_back({.codec = static_cast<Codec>(codec)});
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128})
      for (const DType type : {DType::f16, DType::bf16, DType::f32}) all.push_back({Codec::affine, bits, group, type});
  return all;
}

// A matrix of random bytes: every pattern is a legal one.
struct Random {
  std::vector<std::byte> data, scales, biases;
  PackedTensor w;

  Random(const PackedFormat& format, int64_t N, int64_t blocks, uint32_t seed) {
    std::mt19937 random(seed);
    const int64_t K = blocks * values_per_block(format);
    const auto fill = [&](std::vector<std::byte>& out, int64_t size) {
      out.resize(static_cast<size_t>(size));
      for (std::byte& b : out) b = static_cast<std::byte>(random());
    };
    fill(data, N * row_bytes(format, K));
    if (format.codec == Codec::affine) {
      fill(scales, N * blocks * static_cast<int64_t>(size_of(format.scale_type)));
      fill(biases, N * blocks * static_cast<int64_t>(size_of(format.scale_type)));
    }
    w = {format, N, K, data, scales, biases};
  }
};

// Equal words; any NaN equals any other.
::testing::AssertionResult same(float a, float b) {
  if ((std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a << " is not " << b;
}

TEST(Packed, blocks_decode_as_the_gguf_package_does) {
  const test::Vectors vectors("tensor.hvec");
  int checked = 0;
  for (const PackedFormat& format : all_formats()) {
    const std::string name = name_of(format);
    if (format.codec == Codec::affine || !vectors.arrays().contains(name + ".blocks")) continue;
    const auto blocks = vectors.get<std::byte>(name + ".blocks");
    const auto want = vectors.get<float>(name + ".values");
    const PackedTensor w{format, 2, static_cast<int64_t>(want.size()) / 2, blocks, {}, {}};
    validate(w, name);
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t k = 0; k < w.K; ++k)
        ASSERT_TRUE(same(decode_value(w, n, k), want[static_cast<size_t>(n * w.K + k)]))
            << name << " " << n << " " << k;
    ++checked;
  }
  EXPECT_EQ(checked, 14);
}

TEST(Packed, affine_decodes_as_mlx_does) {
  const test::Vectors vectors("tensor.hvec");
  for (const PackedFormat& format : all_formats()) {
    if (format.codec != Codec::affine) continue;
    const std::string name = name_of(format);
    const auto data = vectors.get<std::byte>(name + ".q"), scales = vectors.get<std::byte>(name + ".scales"),
               biases = vectors.get<std::byte>(name + ".biases");
    const auto want = vectors.get<float>(name + ".values");
    const PackedTensor w{format, 4, 2 * format.group, data, scales, biases};
    validate(w, name);
    for (int64_t n = 0; n < w.N; ++n)
      for (int64_t k = 0; k < w.K; ++k)
        ASSERT_TRUE(same(decode_value(w, n, k), want[static_cast<size_t>(n * w.K + k)]))
            << name << " " << n << " " << k;
  }
}

TEST(Packed, rows_equal_single_values) {
  for (const PackedFormat& format : all_formats()) {
    const Random random(format, 3, 5, 11);
    std::vector<float> row(static_cast<size_t>(random.w.K));
    for (int64_t n = 0; n < 3; ++n) {
      decode_row(random.w, n, row);
      for (int64_t k = 0; k < random.w.K; ++k)
        ASSERT_TRUE(same(row[static_cast<size_t>(k)], decode_value(random.w, n, k)))
            << name_of(format) << " " << n << " " << k;
    }
  }
}

TEST(Packed, the_integer_form_gives_the_same_values) {
  int integer_formats = 0;
  for (const PackedFormat& format : all_formats()) {
    if (!is_integer_format(format)) continue;
    ++integer_formats;
    const IntegerForm form = integer_form(format);
    const Random random(format, 3, 4, 12);
    const int64_t K = random.w.K, groups = K / form.group;
    std::vector<uint8_t> q(static_cast<size_t>(K));
    std::vector<float> scale(static_cast<size_t>(groups)), bias(static_cast<size_t>(groups), 7.0f);
    for (int64_t n = 0; n < 3; ++n) {
      unpack_row(random.w, n, q.data(), scale.data(), bias.data());
      for (int64_t k = 0; k < K; ++k) {
        const auto i = static_cast<size_t>(k), g = static_cast<size_t>(k / form.group);
        ASSERT_LT(q[i], 1 << form.bits) << name_of(format);
        float value = scale[g] * static_cast<float>(q[i] - form.zero);
        if (form.has_bias) value += bias[g];
        else ASSERT_EQ(bias[g], 0.0f);
        ASSERT_TRUE(same(value, decode_value(random.w, n, k))) << name_of(format) << " " << n << " " << k;
      }
    }
  }
  EXPECT_EQ(integer_formats, 10 + 6 * 3 * 3);
}

TEST(Packed, affine_streams_run_from_the_low_bits) {
  // 3 bits: values 0..7 in ascending order fill three bytes as 0b11111010'11000110'10001000.
  const std::byte data[] = {std::byte{0x88}, std::byte{0xc6}, std::byte{0xfa}, std::byte{0x88},
                            std::byte{0xc6}, std::byte{0xfa}, std::byte{0x88}, std::byte{0xc6},
                            std::byte{0xfa}, std::byte{0x88}, std::byte{0xc6}, std::byte{0xfa}};
  const float scale = 0.5f, bias = -1;
  const PackedTensor w{{Codec::affine, 3, 32, DType::f32}, 1, 32, data, std::as_bytes(std::span(&scale, 1)),
                       std::as_bytes(std::span(&bias, 1))};
  validate(w, "w");
  for (int k = 0; k < 32; ++k) EXPECT_EQ(decode_value(w, 0, k), 0.5f * static_cast<float>(k % 8) - 1.0f);
}

// A scale is bad exactly when unpacking gives a group scale or bias that is not finite (factors times small integers,
// so a block without a bad factor has none, and a bad factor times 0 is NaN).
TEST(Packed, bad_scales_are_counted) {
  for (const PackedFormat& format : all_formats()) {
    Random random(format, 40, 3, 13);
    if (!is_integer_format(format)) continue;
    if (format.scale_type == DType::bf16 || format.scale_type == DType::f32) {  // make some of the few
      for (size_t i = 0; i + 3 < random.scales.size(); i += 52)
        random.scales[i + 3] = std::byte{0x7f}, random.scales[i + 2] = std::byte{0x80};
    }
    const IntegerForm form = integer_form(format);
    std::vector<uint8_t> q(static_cast<size_t>(random.w.K));
    std::vector<float> scale(static_cast<size_t>(random.w.K / form.group)), bias(scale.size());
    int64_t bad = 0;
    const auto bad_blocks = [&](const std::vector<float>& values) {
      const size_t per_block = static_cast<size_t>(values_per_block(format) / form.group);
      for (size_t i = 0; i < values.size(); i += per_block) bad += !std::isfinite(values[i]);
    };
    for (int64_t n = 0; n < random.w.N; ++n) {
      unpack_row(random.w, n, q.data(), scale.data(), bias.data());
      bad_blocks(scale);
      bad_blocks(bias);
    }
    EXPECT_EQ(count_nonfinite(random.w), bad) << name_of(format);
    EXPECT_EQ(count_nonfinite(random.w, 0, 17) + count_nonfinite(random.w, 17, random.w.N), bad) << name_of(format);
    if (format.codec == Codec::affine) {
      EXPECT_GT(bad, 0) << name_of(format);
    }
  }
  for (const Codec codec : {Codec::f32, Codec::f16, Codec::bf16}) {  // of plain rows the values
    const Random random({.codec = codec}, 40, 300, 1);
    int64_t bad = 0;
    for (int64_t n = 0; n < random.w.N; ++n)
      for (int64_t k = 0; k < random.w.K; ++k) bad += !std::isfinite(decode_value(random.w, n, k));
    EXPECT_GT(bad, 0);
    EXPECT_EQ(count_nonfinite(random.w), bad) << name_of(random.w.format);
  }
}

TEST(Packed, names_and_widths) {
  EXPECT_EQ(name_of(PackedFormat{.codec = Codec::q4_1}), "q4_1");
  EXPECT_EQ(name_of(PackedFormat{Codec::affine, 4, 64, DType::bf16}), "affine4_g64_bf16");
  const std::pair<Codec, double> widths[] = {
      {Codec::f32, 32},      {Codec::f16, 16},     {Codec::bf16, 16},     {Codec::q4_0, 4.5},
      {Codec::q4_1, 5.0},    {Codec::q5_0, 5.5},   {Codec::q5_1, 6.0},    {Codec::q8_0, 8.5},
      {Codec::q4_k, 4.5},    {Codec::q5_k, 5.5},   {Codec::q6_k, 6.5625}, {Codec::q2_k, 2.625},
      {Codec::q3_k, 3.4375}, {Codec::iq4_nl, 4.5}, {Codec::iq4_xs, 4.25}, {Codec::mxfp4, 4.25}};
  for (const auto& [codec, width] : widths)
    EXPECT_EQ(bits_per_weight({.codec = codec}), width) << static_cast<int>(codec);
  EXPECT_EQ(bits_per_weight({Codec::affine, 4, 64, DType::bf16}), 4.5);
  EXPECT_EQ(bits_per_weight({Codec::affine, 3, 32, DType::f32}), 5.0);
  for (const PackedFormat& format : all_formats()) {
    const int64_t K = 3 * values_per_block(format);
    const double scales =
        format.codec == Codec::affine ? 3.0 * 16 * static_cast<double>(size_of(format.scale_type)) : 0;
    EXPECT_EQ(static_cast<double>(K) * bits_per_weight(format),
              8.0 * static_cast<double>(row_bytes(format, K)) + scales);
  }
}

std::string refusal(const PackedTensor& w) {
  try {
    validate(w, "w");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Packed, extents_are_checked) {
  const Random q4(PackedFormat{.codec = Codec::q4_1}, 3, 2, 1);
  EXPECT_EQ(refusal(q4.w), "accepted");
  PackedTensor w = q4.w;
  w.N = 4;
  EXPECT_EQ(refusal(w), "w: data has 120 bytes, 4 rows of 40 need 160");
  w = q4.w, w.K = 48;
  EXPECT_EQ(refusal(w), "w: K = 48 is no multiple of 32, the block of q4_1");
  w = q4.w, w.N = 0;
  EXPECT_EQ(refusal(w), "w: shape [0, 64] is empty");
  w = q4.w, w.N = INT64_MAX / 16;
  EXPECT_EQ(refusal(w), "w: 576460752303423487 rows of 40 bytes exceed 2^63");
  w = q4.w, w.K = INT64_MAX / 32 * 32;
  EXPECT_EQ(refusal(w), "w: K = 9223372036854775776 is too large");
  w = q4.w, w.scales = q4.data;
  EXPECT_EQ(refusal(w), "w: scales has 120 bytes, 3 rows of 0 need 0");

  const Random affine(PackedFormat{Codec::affine, 4, 64, DType::bf16}, 3, 2, 1);
  EXPECT_EQ(refusal(affine.w), "accepted");
  w = affine.w, w.biases = {};
  EXPECT_EQ(refusal(w), "w: biases has 0 bytes, 3 rows of 4 need 12");
  w = affine.w, w.format.bits = 7;
  EXPECT_EQ(refusal(w),
            "w: affine with bits 7 and group_size 64; supported are bits 2 3 4 5 6 8 and group_size 32 64 128");
  w = affine.w, w.format.scale_type = DType::f64;
  EXPECT_EQ(refusal(w), "w: scales are f64; supported are f16 bf16 f32");
}

}  // namespace
}  // namespace hearth
