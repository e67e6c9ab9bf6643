// Element types, and conversions of the two 16-bit floats. Rounding is to nearest, ties to even.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth {

enum class DType : uint8_t { f32, f16, bf16, f64, i8, u8, i32, u32, i64, boolean };

std::string_view name_of(DType type);
size_t size_of(DType type);  // bytes of one element

struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

inline float to_float(bf16 h) { return std::bit_cast<float>(uint32_t{h.bits} << 16); }

inline bf16 to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(u >> 16 | 0x40)};  // NaN stays NaN
  return {static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

inline float to_float(f16 h) {
  const uint32_t sign = uint32_t{h.bits} >> 15 << 31, exponent = h.bits >> 10 & 31, mantissa = h.bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal or zero
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(tiny));
}

inline f16 to_f16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (a >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // rounds to 65,536 or more
  if (a < 0x38800000u) {                                                 // subnormal: add 0.5 so that the ulp is 2^-24
    const float shifted = std::bit_cast<float>(a) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  return {static_cast<uint16_t>(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1)) >> 13)};
}

inline float round_to(DType type, float x) {
  return type == DType::bf16 ? to_float(to_bf16(x)) : type == DType::f16 ? to_float(to_f16(x)) : x;
}

}  // namespace hearth
