// Integer dots without VNNI (AVX2), and their register tiles.
//   pairs  the even and the odd bytes of a quad, zero-extended to int16, meet int16 x in vpmaddwd: exact in one pass.
//          Serves s16, and s8 with 8-bit weights.
//   bytes  s8 with up to 6 bits: vpmaddubsw sums into int16 lanes, widened before they could leave int16:
//          quads * 2 * (2^bits - 1) * 127 <= 32767.
namespace hearth::cpu::HEARTH_ISA::matrix {

HEARTH_INLINE __m256i broadcast(const std::byte* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return _mm256_set1_epi32(x);
}
// The additions as asm: GCC would regroup a long sum into a tree and spill its leaves.
HEARTH_INLINE void add_pairs(__m256i& acc, __m256i w, __m256i x) {
  asm("vpaddd %1, %0, %0" : "+x"(acc) : "x"(_mm256_madd_epi16(w, x)));
}
HEARTH_INLINE void add_bytes(__m256i& acc, __m256i w, __m256i x) {
  asm("vpaddw %1, %0, %0" : "+x"(acc) : "x"(_mm256_maddubs_epi16(w, x)));
}

struct Pairs {
  Ints even, odd;
};

struct S16 {
  static constexpr bool kGroupScale = false, kBytes = false;
  static constexpr bool kOneRow = true;  // has one_row()
  static constexpr int kQuadX = 8, kQuadBytes = 128;
  using Sum = Ints;
  static HEARTH_INLINE const std::byte* data(const Share& a, int64_t m) {
    return a.act + m * a.layout.row + a.layout.data;
  }
  static HEARTH_INLINE Sum zero() { return fill_ints(0); }
  template <int kBits, int Q>
  static HEARTH_INLINE Pairs prepare(const uint8_t* unit) {
    const Ints w = quad<kBits, Q>(unit);
    return {mask(w, 0x00ff00ff), {_mm256_srli_epi16(w.a, 8), _mm256_srli_epi16(w.b, 8)}};
  }
  template <int kBits, int Q>
  static HEARTH_INLINE void dot(Sum& s, const Pairs& w, const std::byte* x, int64_t) {
    const __m256i even = broadcast(x), odd = broadcast(x + 4);
    add_pairs(s.a, w.even.a, even);
    add_pairs(s.b, w.even.b, even);
    add_pairs(s.a, w.odd.a, odd);
    add_pairs(s.b, w.odd.b, odd);
  }
  static HEARTH_INLINE Ints total(const Sum& s, int32_t init) { return add(s, fill_ints(static_cast<uint32_t>(init))); }
  static HEARTH_INLINE void store(uint8_t* p, const Pairs& w) {
    store_ints(p, w.even);
    store_ints(p + 64, w.odd);
  }
};

// Quads that an int16 lane holds: 2 * (2^bits - 1) * 127 each.
template <int kBits>
constexpr int kQuadsNarrow = kBits <= 4   ? 8
                             : kBits == 5 ? 4
                                          : 2;

template <int kWidth>
struct S8 {
  static constexpr bool kGroupScale = true, kBytes = true;
  static constexpr int kQuadX = 4, kQuadBytes = 64;
  struct Sum {
    Ints narrow, wide;
  };
  static HEARTH_INLINE const std::byte* data(const Share& a, int64_t m) { return S16::data(a, m); }
  static HEARTH_INLINE Sum zero() { return {fill_ints(0), fill_ints(0)}; }
  template <int kBits, int Q>
  static HEARTH_INLINE Ints prepare(const uint8_t* unit) {
    return quad<kBits, Q>(unit);
  }
  template <int kBits, int Q>
  static HEARTH_INLINE void dot(Sum& s, const Ints& w, const std::byte* x, int64_t) {
    const __m256i v = broadcast(x), ones = _mm256_set1_epi16(1);
    add_bytes(s.narrow.a, w.a, v);
    add_bytes(s.narrow.b, w.b, v);
    if constexpr ((Q + 1) % (kQuadsNarrow<kBits> < 4 ? kQuadsNarrow<kBits> : 4) == 0) {
      add_pairs(s.wide.a, s.narrow.a, ones);
      add_pairs(s.wide.b, s.narrow.b, ones);
      s.narrow = fill_ints(0);
    }
  }
  static HEARTH_INLINE Ints total(const Sum& s, int32_t init) {
    return add(s.wide, fill_ints(static_cast<uint32_t>(init)));
  }
  static HEARTH_INLINE void store(uint8_t* p, const Ints& w) { store_ints(p, w); }
};

template <>
struct S8<8> : S16 {
  static constexpr bool kGroupScale = true;
  static HEARTH_INLINE const std::byte* data(const Share& a, int64_t m) { return S16::data(a, m) + a.layout.plane; }
};

// The panel is [set][quad].
template <class Mode>
HEARTH_INLINE int64_t set_stride(int64_t k) {
  return k / 4 * Mode::kQuadBytes;
}
template <class Mode>
HEARTH_INLINE int64_t quad_stride(int) {
  return Mode::kQuadBytes;
}
template <class Mode, class W>
HEARTH_INLINE void store_quad(uint8_t* p, const W& w) {
  Mode::store(p, w);
}

constexpr int kPanelTokens = kTileTokens;

// One set of a tile, of pairs (kNarrow 0) or of bytes widened every kNarrow quads. 12 sums, two registers of weights,
// one of x and one product: the 16 registers.
template <bool kGroupScale, int kNarrow, int kTokens>
__attribute__((noinline)) void tile(const TileCall& call, int set) {
  const int64_t folds = call.folds, quads = call.quads, ldx = call.ldx, ld_total = call.ld_total;
  const uint8_t* panel = call.panel + set * folds * quads * (kNarrow ? 64 : 128);
  const float* fold = call.fold + set * 32;
  const std::byte* x = call.x;
  const Constants c = call.c;
  const bool has_bias = call.has_bias, has_zero = call.has_zero;
  float* total = call.total + set * kSetRows;
  for (int64_t f = 0; f < folds; ++f, fold += kTileSets * 32) {
    __m256i sum[kTokens][2];
    const auto tokens = [](auto&& g) __attribute__((always_inline)) { each<0, kTokens>(g); };
    if constexpr (kNarrow == 0) {
      tokens([&]<int t>() __attribute__((always_inline)) {
        sum[t][0] = sum[t][1] = has_zero ? _mm256_set1_epi32(c.init[t * c.ld + f]) : _mm256_setzero_si256();
      });
#pragma GCC unroll 2
      for (int64_t p = 0; p < 2 * quads; ++p, panel += 64, x += 4) {
        const __m256i a = load256(panel), b = load256(panel + 32);
        tokens([&]<int t>() __attribute__((always_inline)) {
          const __m256i v = broadcast(x + t * ldx);
          add_pairs(sum[t][0], a, v);
          add_pairs(sum[t][1], b, v);
        });
      }
    } else {
      __m256i wide[kTokens][2] = {};
      const __m256i ones = _mm256_set1_epi16(1);
      const int64_t narrow = quads < kNarrow ? quads : kNarrow;
      for (int64_t q = narrow;; q += narrow) {
        tokens([&]<int t>() __attribute__((always_inline)) { sum[t][0] = sum[t][1] = _mm256_setzero_si256(); });
#pragma GCC unroll 2
        for (int64_t i = 0; i < narrow; ++i, panel += 64, x += 4) {
          const __m256i a = load256(panel), b = load256(panel + 32);
          tokens([&]<int t>() __attribute__((always_inline)) {
            const __m256i v = broadcast(x + t * ldx);
            add_bytes(sum[t][0], a, v);
            add_bytes(sum[t][1], b, v);
          });
        }
        const bool first = q == narrow;
        tokens([&]<int t>() __attribute__((always_inline)) {
          for (int h = 0; h < 2; ++h) {
            sum[t][h] = _mm256_madd_epi16(sum[t][h], ones);
            if (!first) sum[t][h] = _mm256_add_epi32(sum[t][h], wide[t][h]);
            else if (has_zero) sum[t][h] = _mm256_add_epi32(sum[t][h], _mm256_set1_epi32(c.init[t * c.ld + f]));
          }
        });
        if (q >= quads) break;
        tokens([&]<int t>() __attribute__((always_inline)) {
          wide[t][0] = sum[t][0];
          wide[t][1] = sum[t][1];
        });
      }
    }
    tokens([&]<int t>() __attribute__((always_inline)) {
      float* out = total + t * ld_total;
      Floats scale = load_floats(fold);
      if constexpr (kGroupScale) scale = mul(scale, fill_floats(c.sx[t * c.ld + f]));
      Floats v = fma(scale, to_floats({sum[t][0], sum[t][1]}), load_floats(out));
      if (has_bias) v = fma(load_floats(fold + 16), fill_floats(c.X[t * c.ld + f]), v);
      store_floats(out, v);
    });
  }
}

constexpr int kSetsAtOnce = 1;  // that a call of tiles() serves: a set of a chunk stays in L1 for all rows of x

template <class Mode, int kBits, int kTokens = kTileTokens>
void tiles(const TileCall& call, int tokens, int set, int sets) {
  if constexpr (kTokens > 1)
    if (tokens < kTokens) return tiles<Mode, kBits, kTokens - 1>(call, tokens, set, sets);
  constexpr int kNarrow = Mode::kBytes ? kQuadsNarrow<kBits> : 0;
  tile<Mode::kGroupScale, kNarrow, kTokens>(call, set);
}

// Activations k .. k + 15 to their row's data (cpu/linear/act.h).
HEARTH_INLINE void store_s16(std::byte* data, int64_t k, int64_t, Ints v) { store_pairs(data + 2 * k, v); }
HEARTH_INLINE void store_s8(std::byte* data, int64_t k, int64_t plane, Ints v) {
  store_low_bytes(data + k, v);
  store_pairs(data + plane + 2 * k, v);
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
