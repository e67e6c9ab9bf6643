#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "vectors/read.h"

namespace hearth {
namespace {

// Value of a pattern from its definition: exponent bits, mantissa bits, bias.
double defined(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1u << mantissa_bits) - 1), -mantissa_bits);
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * HUGE_VAL : NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
}

template <class Half>
void check_all_patterns(int exponent_bits, int mantissa_bits, Half (*narrow)(float)) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(Half{static_cast<uint16_t>(bits)});
    const double want = defined(bits, exponent_bits, mantissa_bits);
    const uint16_t back = narrow(value).bits;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(to_float(Half{back}))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), want) << bits;
      ASSERT_EQ(std::signbit(value), bits >> 15 == 1) << bits;
      ASSERT_EQ(back, bits);
    }
  }
}

// Every interval between neighbours: its midpoint goes to the even one, one fp32 step beside it to the nearer one.
template <class Half>
void check_all_roundings(uint16_t largest, Half (*narrow)(float)) {
  for (uint16_t low = 0; low < largest; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const float a = to_float(Half{low}), b = to_float(Half{high});
    const float middle = static_cast<float>((static_cast<double>(a) + static_cast<double>(b)) / 2);
    const float below = std::nextafter(middle, a), above = std::nextafter(middle, b);
    ASSERT_EQ(narrow(middle).bits, low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(narrow(below).bits, low);
    ASSERT_EQ(narrow(above).bits, high);
    ASSERT_EQ(narrow(-middle).bits, (low % 2 == 0 ? low : high) | 0x8000) << low;
  }
}

TEST(DType, every_f16_pattern_has_its_value_and_comes_back) { check_all_patterns<f16>(5, 10, to_f16); }
TEST(DType, every_bf16_pattern_has_its_value_and_comes_back) { check_all_patterns<bf16>(8, 7, to_bf16); }
TEST(DType, f16_rounds_to_nearest_even_everywhere) { check_all_roundings<f16>(0x7bff, to_f16); }

TEST(DType, bf16_rounds_to_nearest_even_everywhere) {
  // Below 0x0080 the midpoints are fp32 subnormals, which are exact all the same.
  check_all_roundings<bf16>(0x7f7f, to_bf16);
}

TEST(DType, values_beyond_the_range_become_infinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(-infinity).bits, 0xfc00);
  EXPECT_EQ(to_f16(3e38f).bits, 0x7c00);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(to_bf16(-infinity).bits, 0xff80);
}

TEST(DType, every_nan_stays_one) {
  for (uint32_t payload = 1; payload < 0x800000; payload += 4093) {
    const float nan = std::bit_cast<float>(0x7f800000u | payload);
    ASSERT_TRUE(std::isnan(to_float(to_bf16(nan)))) << payload;
    ASSERT_TRUE(std::isnan(to_float(to_f16(nan)))) << payload;
  }
}

TEST(DType, conversions_equal_numpy_and_mlx) {
  const test::Vectors vectors("tensor.hvec");
  const auto x = vectors.get<float>("convert.f32");
  const auto halves = vectors.get<uint16_t>("convert.f16"), brains = vectors.get<uint16_t>("convert.bf16");
  ASSERT_GT(x.size(), 7000u);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(to_f16(x[i]).bits, halves[i]) << x[i];
    ASSERT_EQ(to_bf16(x[i]).bits, brains[i]) << x[i];
    ASSERT_EQ(round_to(DType::bf16, x[i]), to_float(bf16{brains[i]}));
    ASSERT_EQ(round_to(DType::f32, x[i]), x[i]);
  }
}

TEST(DType, names_and_sizes) {
  const std::pair<DType, std::pair<const char*, size_t>> all[] = {
      {DType::f32, {"f32", 4}}, {DType::f16, {"f16", 2}},     {DType::bf16, {"bf16", 2}}, {DType::f64, {"f64", 8}},
      {DType::i8, {"i8", 1}},   {DType::u8, {"u8", 1}},       {DType::i32, {"i32", 4}},   {DType::u32, {"u32", 4}},
      {DType::i64, {"i64", 8}}, {DType::boolean, {"bool", 1}}};
  for (const auto& [type, want] : all) {
    EXPECT_EQ(name_of(type), want.first);
    EXPECT_EQ(size_of(type), want.second);
  }
}

}  // namespace
}  // namespace hearth
