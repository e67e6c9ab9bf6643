// The vocabulary of linear_ops_generic.inl for AVX-512 with VNNI: a set of 16 rows is one 512-bit register.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr bool kPairs = false;  // activations in planes (act.h)

struct Ints {
  __m512i v;
};
struct Floats {
  __m512 v;
};

HEARTH_INLINE __m512i word(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }

HEARTH_INLINE Ints load_ints(const void* p) { return {_mm512_loadu_si512(p)}; }
HEARTH_INLINE void store_ints(void* p, Ints a) { _mm512_storeu_si512(p, a.v); }
HEARTH_INLINE Ints fill_ints(uint32_t x) { return {word(x)}; }
template <int kRight>
HEARTH_INLINE Ints shift(Ints a) {
  if constexpr (kRight > 0) return {_mm512_srli_epi32(a.v, kRight)};
  else if constexpr (kRight < 0) return {_mm512_slli_epi32(a.v, -kRight)};
  else return a;
}
HEARTH_INLINE Ints mask(Ints a, uint32_t m) { return {_mm512_and_si512(a.v, word(m))}; }
HEARTH_INLINE Ints mask_or(Ints a, uint32_t m, Ints b) {
  return {_mm512_ternarylogic_epi32(a.v, word(m), b.v, 0xea)};  // (a & m) | b
}
HEARTH_INLINE Ints add(Ints a, Ints b) { return {_mm512_add_epi32(a.v, b.v)}; }
HEARTH_INLINE Floats to_floats(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }
// Keeps GCC 12 from copying and spilling the sums of a large tile at its end.
HEARTH_INLINE void pin(Ints& a) { asm volatile("" : "+v"(a.v)); }
HEARTH_INLINE void pin(Floats& a) { asm volatile("" : "+v"(a.v)); }

HEARTH_INLINE Floats load_floats(const float* p) { return {_mm512_loadu_ps(p)}; }
HEARTH_INLINE void store_floats(float* p, Floats a) { _mm512_storeu_ps(p, a.v); }
HEARTH_INLINE Floats fill_floats(float x) { return {_mm512_set1_ps(x)}; }
HEARTH_INLINE Floats mul(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
HEARTH_INLINE Floats add(Floats a, Floats b) { return {_mm512_add_ps(a.v, b.v)}; }
HEARTH_INLINE Floats fma(Floats a, Floats b, Floats c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
HEARTH_INLINE Floats negative(Floats a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
HEARTH_INLINE Floats load_f16(const void* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
HEARTH_INLINE Floats load_bf16(const void* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
HEARTH_INLINE Floats load_u8(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
HEARTH_INLINE Floats load_i8(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}

// As asm with the sum in place: given the intrinsic, GCC 12 copies and spills the sums of a 24-register tile.
HEARTH_INLINE void dot_bytes(Ints& acc, Ints w, uint32_t x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc.v) : "v"(w.v), "v"(word(x)));
}

HEARTH_INLINE Ints round_ints(const float* x, float inv) {
  return {_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(inv)))};
}
HEARTH_INLINE int32_t sum_of(Ints a) { return _mm512_reduce_add_epi32(a.v); }
HEARTH_INLINE void store_low_bytes(void* p, Ints a) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
HEARTH_INLINE float largest(const float* x, int64_t K) {
  __m512i top = _mm512_setzero_si512();
  for (int64_t k = 0; k < K; k += 16)
    top = _mm512_max_epi32(top, _mm512_and_si512(_mm512_loadu_si512(x + k), word(0x7fffffff)));
  return __builtin_bit_cast(float, _mm512_reduce_max_epi32(top));
}

// The register tiles: rows of x that one pass over a block serves; rows of x, sets of a panel (two a block), sets
// beside all those rows in the f32 core.
constexpr int kDirectMax = 4, kTileTokens = 6, kTileSets = 4, kTileF32Sets = 4;
HEARTH_INLINE void fma_in_place(Floats& acc, Floats a, Floats b) {
  asm("vfmadd231ps %2, %1, %0" : "+v"(acc.v) : "v"(a.v), "v"(b.v));
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
