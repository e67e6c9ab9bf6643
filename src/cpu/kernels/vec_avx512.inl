// Sixteen fp32 lanes as one 512-bit register. Meaning of every function: vec_generic.inl.
namespace hearth::cpu::HEARTH_ISA {

struct Vec {
  static constexpr int64_t width = 16;
  __m512 v;
};
struct IVec {
  __m512i v;
};
struct Mask {
  __mmask16 m;
};

HEARTH_INLINE Vec fill(float x) { return {_mm512_set1_ps(x)}; }
HEARTH_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
HEARTH_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
HEARTH_INLINE void store(float* p, Vec x) { _mm512_storeu_ps(p, x.v); }
HEARTH_INLINE __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
HEARTH_INLINE Vec load_part(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
HEARTH_INLINE void store_part(float* p, Vec x, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), x.v); }

HEARTH_INLINE Vec operator+(Vec x, Vec y) { return {_mm512_add_ps(x.v, y.v)}; }
HEARTH_INLINE Vec operator-(Vec x, Vec y) { return {_mm512_sub_ps(x.v, y.v)}; }
HEARTH_INLINE Vec operator*(Vec x, Vec y) { return {_mm512_mul_ps(x.v, y.v)}; }
HEARTH_INLINE Vec operator/(Vec x, Vec y) { return {_mm512_div_ps(x.v, y.v)}; }
HEARTH_INLINE Vec fma(Vec x, Vec y, Vec z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
HEARTH_INLINE Vec fnma(Vec x, Vec y, Vec z) { return {_mm512_fnmadd_ps(x.v, y.v, z.v)}; }
HEARTH_INLINE Vec max(Vec x, Vec y) { return {_mm512_max_ps(x.v, y.v)}; }
HEARTH_INLINE Vec min(Vec x, Vec y) { return {_mm512_min_ps(x.v, y.v)}; }

HEARTH_INLINE IVec ifill(int32_t x) { return {_mm512_set1_epi32(x)}; }
HEARTH_INLINE IVec bits(Vec x) { return {_mm512_castps_si512(x.v)}; }
HEARTH_INLINE Vec floats(IVec x) { return {_mm512_castsi512_ps(x.v)}; }
HEARTH_INLINE IVec operator+(IVec x, IVec y) { return {_mm512_add_epi32(x.v, y.v)}; }
HEARTH_INLINE IVec operator&(IVec x, IVec y) { return {_mm512_and_si512(x.v, y.v)}; }
HEARTH_INLINE IVec operator|(IVec x, IVec y) { return {_mm512_or_si512(x.v, y.v)}; }
template <int n>
HEARTH_INLINE IVec shift_left(IVec x) {
  return {_mm512_slli_epi32(x.v, n)};
}
template <int n>
HEARTH_INLINE IVec shift_right(IVec x) {
  return {_mm512_srli_epi32(x.v, n)};
}
HEARTH_INLINE IVec nearest(Vec x) { return {_mm512_cvtps_epi32(x.v)}; }
HEARTH_INLINE Vec to_float(IVec x) { return {_mm512_cvtepi32_ps(x.v)}; }
HEARTH_INLINE IVec lane_numbers() { return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}; }

HEARTH_INLINE Mask less(Vec x, Vec y) { return {_mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ)}; }
HEARTH_INLINE Mask is_nan(Vec x) { return {_mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q)}; }
HEARTH_INLINE Mask greater(IVec x, IVec y) { return {_mm512_cmpgt_epi32_mask(x.v, y.v)}; }
HEARTH_INLINE Vec select(Mask m, Vec yes, Vec no) { return {_mm512_mask_blend_ps(m.m, no.v, yes.v)}; }

HEARTH_INLINE __m256 upper_half(__m512 x) { return _mm512_extractf32x8_ps(x, 1); }
HEARTH_INLINE float reduce_add(Vec x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x.v), upper_half(x.v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
HEARTH_INLINE float reduce_max(Vec x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), upper_half(x.v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

HEARTH_INLINE Vec load_bf16(const uint16_t* p) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16))};
}
HEARTH_INLINE void store_bf16(uint16_t* p, Vec x) {
  const __m512i u = bits(x).v;
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
  const __m512i chosen = _mm512_mask_blend_epi32(is_nan(x).m, rounded, quiet);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
}
HEARTH_INLINE Vec from_bytes(__m128i x) { return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(x))}; }
HEARTH_INLINE Vec load_u8(const uint8_t* p) { return from_bytes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
HEARTH_INLINE Vec load_u4(const uint8_t* p) {
  const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), low = _mm_set1_epi8(15);
  return from_bytes(_mm_unpacklo_epi8(_mm_and_si128(x, low), _mm_and_si128(_mm_srli_epi16(x, 4), low)));
}
HEARTH_INLINE Vec round_f16(Vec x) { return {_mm512_cvtph_ps(_mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT))}; }

HEARTH_INLINE void transpose(Vec* r) {
  __m512 t[16], u[16];
  for (int i = 0; i < 16; i += 2) {  // pairs of rows
    t[i] = _mm512_unpacklo_ps(r[i].v, r[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(r[i].v, r[i + 1].v);
  }
  for (int i = 0; i < 16; i += 4) {  // u[i + c]: column c of each 128-bit part, rows i .. i + 3
    u[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int c = 0; c < 4; ++c) {
    const __m512 low0 = _mm512_shuffle_f32x4(u[c], u[c + 4], 0x88), low1 = _mm512_shuffle_f32x4(u[c], u[c + 4], 0xdd);
    const __m512 high0 = _mm512_shuffle_f32x4(u[c + 8], u[c + 12], 0x88);
    const __m512 high1 = _mm512_shuffle_f32x4(u[c + 8], u[c + 12], 0xdd);
    r[c].v = _mm512_shuffle_f32x4(low0, high0, 0x88);
    r[c + 8].v = _mm512_shuffle_f32x4(low0, high0, 0xdd);
    r[c + 4].v = _mm512_shuffle_f32x4(low1, high1, 0x88);
    r[c + 12].v = _mm512_shuffle_f32x4(low1, high1, 0xdd);
  }
}

constexpr int64_t kTileVecs = 2;
constexpr int kTileRows = 8;

}  // namespace hearth::cpu::HEARTH_ISA
