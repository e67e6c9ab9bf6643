// The vocabulary of the matrix kernels in portable C++: one set of 16 rows is 16 lanes. The same words stand in
// linear_ops_avx2.inl and linear_ops_avx512.inl; kernels are written in them once. Integer sums are exact and fp32
// operations are single roundings, so all three give the same bits.
namespace hearth::cpu::HEARTH_ISA::matrix {

constexpr bool kPairs = false;  // activations in planes (act.h)

// Vectors of the compiler: it lowers them to what the target has.
using Words __attribute__((vector_size(64))) = uint32_t;
using Reals __attribute__((vector_size(64))) = float;
struct Ints {
  Words v;
};
struct Floats {
  Reals v;
};

// What the target lowers to long code stays a call: the kernels unroll their tiles.
#define HEARTH_CALL __attribute__((noinline))
#define HEARTH_LANES for (int i = 0; i < 16; ++i)

inline Ints load_ints(const void* p) {
  Ints r;
  __builtin_memcpy(&r.v, p, 64);
  return r;
}
inline void store_ints(void* p, const Ints& a) { __builtin_memcpy(p, &a.v, 64); }
inline Ints fill_ints(uint32_t x) { return {Words{} + x}; }
template <int kRight>  // negative: left
inline Ints shift(const Ints& a) {
  if constexpr (kRight >= 0) return {a.v >> kRight};
  else return {a.v << -kRight};
}
inline Ints mask(const Ints& a, uint32_t m) { return {a.v & m}; }
inline Ints mask_or(const Ints& a, uint32_t m, const Ints& b) { return {(a.v & m) | b.v}; }
inline Ints add(const Ints& a, const Ints& b) { return {a.v + b.v}; }
HEARTH_CALL inline Floats to_floats(const Ints& a) {
  using Signed __attribute__((vector_size(64))) = int32_t;
  return {__builtin_convertvector(reinterpret_cast<const Signed&>(a.v), Reals)};
}
inline void pin(Ints&) {}
inline void pin(Floats&) {}

inline Floats load_floats(const float* p) {
  Floats r;
  __builtin_memcpy(&r.v, p, 64);
  return r;
}
inline void store_floats(float* p, const Floats& a) { __builtin_memcpy(p, &a.v, 64); }
inline Floats fill_floats(float x) { return {x - Reals{}}; }
inline Floats mul(const Floats& a, const Floats& b) { return {a.v * b.v}; }
inline Floats add(const Floats& a, const Floats& b) { return {a.v + b.v}; }
HEARTH_CALL inline Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  Floats r;
  HEARTH_LANES r.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return r;
}
inline Floats negative(const Floats& a) { return {-a.v}; }
HEARTH_CALL inline Floats load_f16(const void* p) {
  f16 h[16];
  __builtin_memcpy(h, p, 32);
  Floats r;
  HEARTH_LANES r.v[i] = to_float(h[i]);
  return r;
}
HEARTH_CALL inline Floats load_bf16(const void* p) {
  bf16 h[16];
  __builtin_memcpy(h, p, 32);
  Floats r;
  HEARTH_LANES r.v[i] = to_float(h[i]);
  return r;
}
HEARTH_CALL inline Floats load_u8(const uint8_t* p) {
  Floats r;
  HEARTH_LANES r.v[i] = static_cast<float>(p[i]);
  return r;
}
HEARTH_CALL inline Floats load_i8(const uint8_t* p) {
  Floats r;
  HEARTH_LANES r.v[i] = static_cast<float>(static_cast<int8_t>(p[i]));
  return r;
}

// acc += unsigned bytes of w times the signed bytes of one dword of x.
HEARTH_CALL inline void dot_bytes(Ints& acc, const Ints& w, uint32_t x) {
  const auto byte = [x](int i) { return static_cast<uint32_t>(static_cast<int8_t>(x >> 8 * i)); };  // wraps exactly
  acc.v += (w.v & 255) * byte(0) + (w.v >> 8 & 255) * byte(1) + (w.v >> 16 & 255) * byte(2) + (w.v >> 24) * byte(3);
}

// rint(x * inv) of 16 values, as 32-bit integers; |x * inv| < 2^31.
HEARTH_CALL inline Ints round_ints(const float* x, float inv) {
  Ints r;
  HEARTH_LANES r.v[i] = static_cast<uint32_t>(static_cast<int32_t>(__builtin_nearbyintf(x[i] * inv)));
  return r;
}
inline int32_t sum_of(const Ints& a) {
  uint32_t s = 0;
  HEARTH_LANES s += a.v[i];
  return static_cast<int32_t>(s);
}
inline void store_low_bytes(void* p, const Ints& a) {
  uint8_t b[16];
  HEARTH_LANES b[i] = static_cast<uint8_t>(a.v[i]);
  __builtin_memcpy(p, b, 16);
}
// The largest |x| of K values (a multiple of 16); NaN or infinity where there is one.
HEARTH_CALL inline float largest(const float* x, int64_t K) {
  uint32_t top[16] = {};  // magnitudes order like their bits, infinities and NaN last
  for (int64_t k = 0; k < K; k += 16) HEARTH_LANES {
      uint32_t u;
      __builtin_memcpy(&u, x + k + i, 4);
      u &= 0x7fffffff;
      top[i] = u > top[i] ? u : top[i];
    }
  uint32_t best = 0;
  HEARTH_LANES best = top[i] > best ? top[i] : best;
  float r;
  __builtin_memcpy(&r, &best, 4);
  return r;
}

// The register tiles: rows of x that one pass over a block serves; rows of x, sets of a panel (two a block), sets
// beside all those rows in the f32 core.
constexpr int kDirectMax = 1, kTileTokens = 2, kTileSets = 2, kTileF32Sets = 2;
inline void fma_in_place(Floats& acc, const Floats& a, const Floats& b) { acc = fma(a, b, acc); }

}  // namespace hearth::cpu::HEARTH_ISA::matrix
