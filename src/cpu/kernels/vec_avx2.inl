// Sixteen fp32 lanes as two 256-bit registers. Meaning of every function: vec_generic.inl.
namespace hearth::cpu::HEARTH_ISA {

struct Vec {
  static constexpr int64_t width = 16;
  __m256 a, b;
};
struct IVec {
  __m256i a, b;
};
struct Mask {
  __m256 a, b;
};

HEARTH_INLINE Vec fill(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
HEARTH_INLINE Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
HEARTH_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
HEARTH_INLINE void store(float* p, Vec x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
HEARTH_INLINE Vec load_part(const float* p, int64_t n) {
  alignas(32) float t[16] = {};
  std::memcpy(t, p, static_cast<size_t>(n) * 4);
  return load(t);
}
HEARTH_INLINE void store_part(float* p, Vec x, int64_t n) {
  alignas(32) float t[16];
  store(t, x);
  std::memcpy(p, t, static_cast<size_t>(n) * 4);
}

HEARTH_INLINE Vec operator+(Vec x, Vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
HEARTH_INLINE Vec operator-(Vec x, Vec y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
HEARTH_INLINE Vec operator*(Vec x, Vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
HEARTH_INLINE Vec operator/(Vec x, Vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
HEARTH_INLINE Vec fma(Vec x, Vec y, Vec z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
HEARTH_INLINE Vec fnma(Vec x, Vec y, Vec z) {
  return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
HEARTH_INLINE Vec max(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
HEARTH_INLINE Vec min(Vec x, Vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }

HEARTH_INLINE IVec ifill(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
HEARTH_INLINE IVec bits(Vec x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
HEARTH_INLINE Vec floats(IVec x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
HEARTH_INLINE IVec operator+(IVec x, IVec y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
HEARTH_INLINE IVec operator&(IVec x, IVec y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
HEARTH_INLINE IVec operator|(IVec x, IVec y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
template <int n>
HEARTH_INLINE IVec shift_left(IVec x) {
  return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
}
template <int n>
HEARTH_INLINE IVec shift_right(IVec x) {
  return {_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n)};
}
HEARTH_INLINE IVec nearest(Vec x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
HEARTH_INLINE Vec to_float(IVec x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
HEARTH_INLINE IVec lane_numbers() {
  return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
}

HEARTH_INLINE Mask less(Vec x, Vec y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
HEARTH_INLINE Mask is_nan(Vec x) {
  return {_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)};
}
HEARTH_INLINE Mask greater(IVec x, IVec y) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(x.a, y.a)), _mm256_castsi256_ps(_mm256_cmpgt_epi32(x.b, y.b))};
}
HEARTH_INLINE Vec select(Mask m, Vec yes, Vec no) {
  return {_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
}

HEARTH_INLINE float reduce_add(Vec x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
HEARTH_INLINE float reduce_max(Vec x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

HEARTH_INLINE Vec load_bf16(const uint16_t* p) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x));
  const __m256i high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
}
HEARTH_INLINE __m256i bf16_bits(__m256 x) {  // the bits in the upper half of every lane's word, shifted down
  const __m256i u = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}
HEARTH_INLINE void store_bf16(uint16_t* p, Vec x) {
  const __m256i packed = _mm256_packus_epi32(bf16_bits(x.a), bf16_bits(x.b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
HEARTH_INLINE Vec from_bytes(__m128i x) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)))};
}
HEARTH_INLINE Vec load_u8(const uint8_t* p) { return from_bytes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
HEARTH_INLINE Vec load_u4(const uint8_t* p) {
  const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), low = _mm_set1_epi8(15);
  return from_bytes(_mm_unpacklo_epi8(_mm_and_si128(x, low), _mm_and_si128(_mm_srli_epi16(x, 4), low)));
}
HEARTH_INLINE Vec round_f16(Vec x) {
  return {_mm256_cvtph_ps(_mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT)),
          _mm256_cvtph_ps(_mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT))};
}

HEARTH_INLINE void transpose8(__m256* r) {
  __m256 t[8], u[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}
HEARTH_INLINE void transpose(Vec* r) {
  __m256 q[4][8];  // quadrants: rows 0-7 and 8-15, columns 0-7 and 8-15
  for (int i = 0; i < 8; ++i) {
    q[0][i] = r[i].a;
    q[1][i] = r[i].b;
    q[2][i] = r[i + 8].a;
    q[3][i] = r[i + 8].b;
  }
  for (int i = 0; i < 4; ++i) transpose8(q[i]);
  for (int i = 0; i < 8; ++i) {
    r[i] = {q[0][i], q[2][i]};
    r[i + 8] = {q[1][i], q[3][i]};
  }
}

constexpr int64_t kTileVecs = 1;
constexpr int kTileRows = 6;

}  // namespace hearth::cpu::HEARTH_ISA
