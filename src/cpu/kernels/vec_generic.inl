// Sixteen fp32 lanes, portable. Every kernel of this folder is written against Vec, whose operations are single IEEE
// operations lane by lane; that is why all instruction sets give the same bits. Sums over lanes use one tree: l with
// l + 8, then l + 4, l + 2, l + 1. max and min give the second operand when a lane of either is NaN.
namespace hearth::cpu::HEARTH_ISA {

struct Vec {
  static constexpr int64_t width = 16;
  float f[16];
};
struct IVec {
  int32_t i[16];
};
struct Mask {
  bool b[16];
};

#define HEARTH_LANES for (int l = 0; l < 16; ++l)
// For loops of library calls: sixteen copies of a call only cost.
#define HEARTH_LANES_ROLLED _Pragma("GCC unroll 1") HEARTH_LANES

inline Vec fill(float x) {
  Vec r;
  HEARTH_LANES r.f[l] = x;
  return r;
}
inline Vec zero() { return fill(0.0f); }
inline Vec load(const float* p) {
  Vec r;
  std::memcpy(r.f, p, sizeof r.f);
  return r;
}
inline void store(float* p, const Vec& x) { std::memcpy(p, x.f, sizeof x.f); }
// The first n < 16 lanes; the others are zero.
inline Vec load_part(const float* p, int64_t n) {
  Vec r = zero();
  std::memcpy(r.f, p, static_cast<size_t>(n) * 4);
  return r;
}
inline void store_part(float* p, const Vec& x, int64_t n) { std::memcpy(p, x.f, static_cast<size_t>(n) * 4); }

inline Vec operator+(const Vec& a, const Vec& b) {
  Vec r;
  HEARTH_LANES r.f[l] = a.f[l] + b.f[l];
  return r;
}
inline Vec operator-(const Vec& a, const Vec& b) {
  Vec r;
  HEARTH_LANES r.f[l] = a.f[l] - b.f[l];
  return r;
}
inline Vec operator*(const Vec& a, const Vec& b) {
  Vec r;
  HEARTH_LANES r.f[l] = a.f[l] * b.f[l];
  return r;
}
inline Vec operator/(const Vec& a, const Vec& b) {
  Vec r;
  HEARTH_LANES r.f[l] = a.f[l] / b.f[l];
  return r;
}
inline Vec fma(const Vec& a, const Vec& b, const Vec& c) {  // a * b + c, one rounding
  Vec r;
  HEARTH_LANES_ROLLED r.f[l] = __builtin_fmaf(a.f[l], b.f[l], c.f[l]);
  return r;
}
inline Vec fnma(const Vec& a, const Vec& b, const Vec& c) {  // c - a * b, one rounding
  Vec r;
  HEARTH_LANES_ROLLED r.f[l] = __builtin_fmaf(-a.f[l], b.f[l], c.f[l]);
  return r;
}
inline Vec max(const Vec& a, const Vec& b) {
  Vec r;
  HEARTH_LANES r.f[l] = a.f[l] > b.f[l] ? a.f[l] : b.f[l];
  return r;
}
inline Vec min(const Vec& a, const Vec& b) {
  Vec r;
  HEARTH_LANES r.f[l] = a.f[l] < b.f[l] ? a.f[l] : b.f[l];
  return r;
}

inline IVec ifill(int32_t x) {
  IVec r;
  HEARTH_LANES r.i[l] = x;
  return r;
}
inline IVec bits(const Vec& x) {
  IVec r;
  std::memcpy(r.i, x.f, sizeof r.i);
  return r;
}
inline Vec floats(const IVec& x) {
  Vec r;
  std::memcpy(r.f, x.i, sizeof r.f);
  return r;
}
inline IVec operator+(const IVec& a, const IVec& b) {
  IVec r;
  HEARTH_LANES r.i[l] = static_cast<int32_t>(static_cast<uint32_t>(a.i[l]) + static_cast<uint32_t>(b.i[l]));
  return r;
}
inline IVec operator&(const IVec& a, const IVec& b) {
  IVec r;
  HEARTH_LANES r.i[l] = a.i[l] & b.i[l];
  return r;
}
inline IVec operator|(const IVec& a, const IVec& b) {
  IVec r;
  HEARTH_LANES r.i[l] = a.i[l] | b.i[l];
  return r;
}
template <int n>
inline IVec shift_left(const IVec& a) {
  IVec r;
  HEARTH_LANES r.i[l] = static_cast<int32_t>(static_cast<uint32_t>(a.i[l]) << n);
  return r;
}
template <int n>
inline IVec shift_right(const IVec& a) {  // zeros come in
  IVec r;
  HEARTH_LANES r.i[l] = static_cast<int32_t>(static_cast<uint32_t>(a.i[l]) >> n);
  return r;
}
inline IVec nearest(const Vec& x) {  // ties to even; -2^31 for a NaN and beyond the integers, as the hardware has it
  IVec r;
  HEARTH_LANES_ROLLED r.i[l] =
      x.f[l] >= -0x1p31f && x.f[l] < 0x1p31f ? static_cast<int32_t>(__builtin_rintf(x.f[l])) : INT32_MIN;
  return r;
}
inline Vec to_float(const IVec& x) {
  Vec r;
  HEARTH_LANES r.f[l] = static_cast<float>(x.i[l]);
  return r;
}
inline IVec lane_numbers() {
  IVec r;
  HEARTH_LANES r.i[l] = l;
  return r;
}

inline Mask less(const Vec& a, const Vec& b) {
  Mask r;
  HEARTH_LANES r.b[l] = a.f[l] < b.f[l];
  return r;
}
inline Mask is_nan(const Vec& a) {
  Mask r;
  HEARTH_LANES r.b[l] = a.f[l] != a.f[l];
  return r;
}
inline Mask greater(const IVec& a, const IVec& b) {
  Mask r;
  HEARTH_LANES r.b[l] = a.i[l] > b.i[l];
  return r;
}
inline Vec select(const Mask& m, const Vec& yes, const Vec& no) {
  Vec r;
  HEARTH_LANES r.f[l] = m.b[l] ? yes.f[l] : no.f[l];
  return r;
}

inline float reduce_add(const Vec& x) {
  float s[16];
  std::memcpy(s, x.f, sizeof s);
  for (int step = 8; step > 0; step /= 2)
    for (int l = 0; l < step; ++l) s[l] = s[l] + s[l + step];
  return s[0];
}
inline float reduce_max(const Vec& x) {
  float s[16];
  std::memcpy(s, x.f, sizeof s);
  for (int step = 8; step > 0; step /= 2)
    for (int l = 0; l < step; ++l) s[l] = s[l] > s[l + step] ? s[l] : s[l + step];
  return s[0];
}

inline Vec load_bf16(const uint16_t* p) {
  Vec r;
  HEARTH_LANES r.f[l] = hearth::to_float(bf16{p[l]});
  return r;
}
inline void store_bf16(uint16_t* p, const Vec& x) { HEARTH_LANES p[l] = hearth::to_bf16(x.f[l]).bits; }
inline Vec load_u8(const uint8_t* p) {
  Vec r;
  HEARTH_LANES r.f[l] = static_cast<float>(p[l]);
  return r;
}
// Sixteen nibbles of eight bytes, low one first.
inline Vec load_u4(const uint8_t* p) {
  Vec r;
  HEARTH_LANES r.f[l] = static_cast<float>(p[l / 2] >> (l % 2 * 4) & 15);
  return r;
}
inline Vec round_f16(const Vec& x) {
  Vec r;
  HEARTH_LANES r.f[l] = hearth::to_float(hearth::to_f16(x.f[l]));
  return r;
}

// r[i] lane l becomes r[l] lane i.
inline void transpose(Vec* r) {
  for (int i = 0; i < 16; ++i)
    for (int l = 0; l < i; ++l) {
      const float t = r[i].f[l];
      r[i].f[l] = r[l].f[i];
      r[l].f[i] = t;
    }
}

#undef HEARTH_LANES_ROLLED
#undef HEARTH_LANES

constexpr int64_t kTileVecs = 1;  // Vecs across a register tile
constexpr int kTileRows = 1;      // rows of one

}  // namespace hearth::cpu::HEARTH_ISA
