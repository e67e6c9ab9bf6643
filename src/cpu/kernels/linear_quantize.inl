// Rows of x as integers (cpu/linear.h, cpu/linear/act.h): inv = 1 / sx, v = rint(x * inv), sx = max(max|x| / v_max,
// 2^-100). |v| <= v_max: two roundings move v_max by less than a half. A row (s8: a group) with a NaN or an infinity
// gets v = 0 and sx = NaN. The same bits from every instruction set: v and its sums are integers.
namespace hearth::cpu::HEARTH_ISA::matrix {

struct ActScale {
  float sx, inv;
};
HEARTH_INLINE ActScale act_scale(float top, int v_max) {
  if (!(top <= 3.402823466e38f)) return {__builtin_nanf(""), 0};
  const float exact = top / static_cast<float>(v_max), sx = exact > kActScaleMin ? exact : kActScaleMin;
  return {sx, 1 / sx};
}

// 16 values from x, or zeros where the scale says that x is not finite.
HEARTH_INLINE Ints quantized(const float* x, const ActScale& s) {
  return s.inv == 0 ? fill_ints(0) : round_ints(x, s.inv);
}

inline void quantize_s16(const float* x, int64_t K, const ActLayout& layout, std::byte* row) noexcept {
  const ActScale scale = act_scale(largest(x, K), kActMax16);
  __builtin_memcpy(row, &scale.sx, 4);
  int32_t* sums = reinterpret_cast<int32_t*>(row + layout.sums);
  std::byte* data = row + layout.data;
  for (int64_t k = 0; k < K; k += 16) {
    const Ints v = quantized(x + k, scale);
    sums[k / 16] = sum_of(v);
    store_s16(data, k, layout.plane, v);
  }
}

inline void quantize_s8(const float* x, int64_t K, const ActLayout& layout, std::byte* row) noexcept {
  int32_t* sums = reinterpret_cast<int32_t*>(row + layout.sums);
  float* scales = reinterpret_cast<float*>(row + layout.scales);
  std::byte* data = row + layout.data;
  for (int64_t k = 0; k < K; k += 16) {
    const int64_t group = k & ~int64_t{31};
    const ActScale scale = act_scale(largest(x + group, 32), kActMax8);
    scales[k / 32] = scale.sx;
    const Ints v = quantized(x + k, scale);
    sums[k / 16] = sum_of(v);
    store_s8(data, k, layout.plane, v);
  }
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
