// The vocabulary of linear_ops_generic.inl for AVX2, FMA and F16C: a set of 16 rows is two 256-bit registers.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr bool kPairs = true;  // activations as pairs of int16 for vpmaddwd, and as bytes for vpmaddubsw (act.h)

struct Ints {
  __m256i a, b;
};
struct Floats {
  __m256 a, b;
};

HEARTH_INLINE __m256i word(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
HEARTH_INLINE __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
HEARTH_INLINE __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

HEARTH_INLINE Ints load_ints(const void* p) { return {load256(p), load256(static_cast<const char*>(p) + 32)}; }
HEARTH_INLINE void store_ints(void* p, Ints v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v.a);
  _mm256_storeu_si256(static_cast<__m256i*>(p) + 1, v.b);
}
HEARTH_INLINE Ints fill_ints(uint32_t x) { return {word(x), word(x)}; }
template <int kRight>
HEARTH_INLINE Ints shift(Ints v) {
  if constexpr (kRight > 0) return {_mm256_srli_epi32(v.a, kRight), _mm256_srli_epi32(v.b, kRight)};
  else if constexpr (kRight < 0) return {_mm256_slli_epi32(v.a, -kRight), _mm256_slli_epi32(v.b, -kRight)};
  else return v;
}
HEARTH_INLINE Ints mask(Ints v, uint32_t m) { return {_mm256_and_si256(v.a, word(m)), _mm256_and_si256(v.b, word(m))}; }
HEARTH_INLINE Ints mask_or(Ints v, uint32_t m, Ints o) {
  const Ints t = mask(v, m);
  return {_mm256_or_si256(t.a, o.a), _mm256_or_si256(t.b, o.b)};
}
HEARTH_INLINE Ints add(Ints x, Ints y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
HEARTH_INLINE Floats to_floats(Ints v) { return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)}; }

HEARTH_INLINE Floats load_floats(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
HEARTH_INLINE void store_floats(float* p, Floats v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
HEARTH_INLINE Floats fill_floats(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
HEARTH_INLINE Floats mul(Floats x, Floats y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
HEARTH_INLINE Floats add(Floats x, Floats y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
HEARTH_INLINE Floats fma(Floats x, Floats y, Floats z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
HEARTH_INLINE Floats negative(Floats x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign)};
}
HEARTH_INLINE Floats load_f16(const void* p) {
  return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(static_cast<const char*>(p) + 16))};
}
HEARTH_INLINE __m256 widen_bf16(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
HEARTH_INLINE Floats load_bf16(const void* p) {
  return {widen_bf16(load128(p)), widen_bf16(load128(static_cast<const char*>(p) + 16))};
}
HEARTH_INLINE Floats load_u8(const uint8_t* p) {
  const __m128i v = load128(p);
  return to_floats({_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8))});
}
HEARTH_INLINE Floats load_i8(const uint8_t* p) {
  const __m128i v = load128(p);
  return to_floats({_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8))});
}

// rint(x * inv) of 16 values as 32-bit integers (the rounding mode is nearest even).
HEARTH_INLINE Ints round_ints(const float* x, float inv) {
  const Floats v = mul(load_floats(x), fill_floats(inv));
  return {_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b)};
}
HEARTH_INLINE int32_t sum_of(Ints v) {
  const __m256i s = _mm256_add_epi32(v.a, v.b);
  __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
  t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1)));
}
// 16 values as int16, in natural order.
HEARTH_INLINE __m256i narrow(Ints v) { return _mm256_permute4x64_epi64(_mm256_packs_epi32(v.a, v.b), 0xd8); }
// The order k 0 2 1 3 of each four: vpmaddwd meets the even and the odd bytes of a quad.
HEARTH_INLINE void store_pairs(void* p, Ints v) {
  const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15,  //
                                         0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm256_shuffle_epi8(narrow(v), order));
}
HEARTH_INLINE void store_low_bytes(void* p, Ints v) {  // of values in -128 .. 127
  const __m256i h = narrow(v);
  _mm_storeu_si128(static_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
}
HEARTH_INLINE float largest(const float* x, int64_t K) {
  const __m256i bits = word(0x7fffffff);
  __m256i top = _mm256_setzero_si256(), other = top;
  for (int64_t k = 0; k < K; k += 16) {
    top = _mm256_max_epi32(top, _mm256_and_si256(load256(x + k), bits));
    other = _mm256_max_epi32(other, _mm256_and_si256(load256(x + k + 8), bits));
  }
  top = _mm256_max_epi32(top, other);
  __m128i t = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4e));
  t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0xb1));
  return _mm_cvtss_f32(_mm_castsi128_ps(t));
}

HEARTH_INLINE void pin(Floats& v) { asm volatile("" : "+x"(v.a), "+x"(v.b)); }

// The register tiles: rows of x that one pass over a block serves; rows of x, sets of a panel (two a block), sets
// beside all those rows in the f32 core.
constexpr int kDirectMax = 4, kTileTokens = 6, kTileSets = 2, kTileF32Sets = 1;
HEARTH_INLINE void fma_in_place(Floats& acc, Floats x, Floats y) { acc = fma(x, y, acc); }

}  // namespace hearth::cpu::HEARTH_ISA::matrix
