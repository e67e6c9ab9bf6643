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

// Where a tile stands: its constants, scales and totals at the fold at hand, in registers.
struct Fold {
  const int32_t* init;
  const float *X, *sx, *scales;  // scales: [scale 16, bias 16] of the set
  float* total;                  // [tokens][sets of the panel][16]
  const int64_t ld;
  const bool has_bias, has_zero;

  HEARTH_INLINE Fold(const TileCall& call, int set)
      : init(call.c.init),
        X(call.c.X),
        sx(call.c.sx),
        scales(call.fold + set * 32),
        total(call.total + set * kSetRows),
        ld(call.c.ld),
        has_bias(call.has_bias),
        has_zero(call.has_zero) {}
  // The sums of token t's 16 rows to its totals (linear_direct.inl has the same operations).
  template <bool kGroupScale, int t>
  HEARTH_INLINE void add(__m256i a, __m256i b) const {
    asm volatile("" ::: "memory");  // else GCC keeps all totals in registers that the sums need
    float* out = total + t * kTileSets * kSetRows;
    Floats scale = load_floats(scales);
    if constexpr (kGroupScale) scale = mul(scale, fill_floats(sx[t]));
    Floats v = fma(scale, to_floats({a, b}), load_floats(out));
    if (has_bias) v = fma(load_floats(scales + 16), fill_floats(X[t]), v);
    store_floats(out, v);
  }
  HEARTH_INLINE void next() {
    init += ld;
    X += ld;
    sx += ld;
    scales += kTileSets * 32;
  }
};

// The x of a tile's tokens, `at` bytes on: two bases and one distance serve six rows.
struct TokenRows {
  const std::byte *first, *fourth;
  int64_t ld;
  template <int t>
  HEARTH_INLINE __m256i broadcast(int64_t at) const {
    return matrix::broadcast((t == 3 || t == 5 ? fourth + (t - 3) * ld : first + t * ld) + at);
  }
};
HEARTH_INLINE TokenRows token_rows(const TileCall& call) { return {call.x, call.x + 3 * call.ldx, call.ldx}; }

// One set of a tile; 12 sums, two registers of weights, one of x and one product: the 16 registers.
// Pairs: sums of int32 over the quads of a fold.
template <bool kGroupScale, int kTokens>
__attribute__((noinline)) void tile_pairs(const TileCall& call, int set) {
  const int64_t folds = call.folds, quads = call.quads;
  const uint8_t* panel = call.panel + set * folds * quads * 128;
  TokenRows x = token_rows(call);
  Fold fold(call, set);
  const auto tokens = [](auto&& g) __attribute__((always_inline)) { each<0, kTokens>(g); };
  for (int64_t f = 0; f < folds; ++f, fold.next()) {
    __m256i sum[kTokens][2];
    tokens([&]<int t>() __attribute__((always_inline)) {
      sum[t][0] = sum[t][1] = fold.has_zero ? _mm256_set1_epi32(fold.init[t]) : _mm256_setzero_si256();
    });
    for (int64_t left = quads; left > 0; left -= 4, panel += 512, x.first += 32, x.fourth += 32)
      each<0, 8>([&]<int p>() __attribute__((always_inline)) {
        const __m256i a = load256(panel + p * 64), b = load256(panel + p * 64 + 32);
        tokens([&]<int t>() __attribute__((always_inline)) {
          const __m256i v = x.template broadcast<t>(p * 4);
          add_pairs(sum[t][0], a, v);
          add_pairs(sum[t][1], b, v);
        });
      });
    tokens([&]<int t>() __attribute__((always_inline)) { fold.template add<kGroupScale, t>(sum[t][0], sum[t][1]); });
  }
}

// Bytes: sums of int16 over kNarrow quads, widened; kQuads a fold (8, or 4 for groups of 16).
template <int kNarrow, int kQuads, int kTokens>
__attribute__((noinline)) void tile_bytes(const TileCall& call, int set) {
  constexpr int kSteps = kNarrow < kQuads ? kNarrow : kQuads, kParts = kQuads / kSteps;
  const int64_t folds = call.folds;
  const uint8_t* panel = call.panel + set * folds * kQuads * 64;
  TokenRows x = token_rows(call);
  Fold fold(call, set);
  const __m256i ones = _mm256_set1_epi16(1);
  const auto tokens = [](auto&& g) __attribute__((always_inline)) { each<0, kTokens>(g); };
  for (int64_t f = 0; f < folds;
       ++f, fold.next(), panel += kQuads * 64, x.first += 4 * kQuads, x.fourth += 4 * kQuads) {
    __m256i wide[kTokens][2];
    each<0, kParts>([&]<int part>() __attribute__((always_inline)) {
      __m256i sum[kTokens][2];
      each<0, kSteps>([&]<int step>() __attribute__((always_inline)) {
        constexpr int q = part * kSteps + step;
        const __m256i a = load256(panel + q * 64), b = load256(panel + q * 64 + 32);
        tokens([&]<int t>() __attribute__((always_inline)) {
          const __m256i v = x.template broadcast<t>(q * 4);
          if constexpr (step == 0) {
            sum[t][0] = _mm256_maddubs_epi16(a, v);
            sum[t][1] = _mm256_maddubs_epi16(b, v);
          } else {
            add_bytes(sum[t][0], a, v);
            add_bytes(sum[t][1], b, v);
          }
        });
      });
      tokens([&]<int t>() __attribute__((always_inline)) {
        each<0, 2>([&]<int h>() __attribute__((always_inline)) {
          const __m256i pairs = _mm256_madd_epi16(sum[t][h], ones);
          wide[t][h] = part == 0 ? pairs : _mm256_add_epi32(wide[t][h], pairs);
        });
        if constexpr (part == kParts - 1) {
          if (fold.has_zero) {
            const __m256i init = _mm256_set1_epi32(fold.init[t]);
            wide[t][0] = _mm256_add_epi32(wide[t][0], init);
            wide[t][1] = _mm256_add_epi32(wide[t][1], init);
          }
          fold.template add<true, t>(wide[t][0], wide[t][1]);
        }
      });
    });
  }
}

constexpr int kSetsAtOnce = 1;  // that a call of tiles() serves: a set of a chunk stays in L1 for all rows of x

template <class Mode, int kBits, int kTokens>
void tile(const TileCall& call, int set) {
  constexpr int kNarrow = kQuadsNarrow<kBits>;
  if constexpr (!Mode::kBytes) {
    tile_pairs<Mode::kGroupScale, kTokens>(call, set);
  } else if constexpr (kNarrow < 8 && kTokens > 3) {  // two sets of sums: half the tokens at a time
    tile<Mode, kBits, 3>(call, set);
    TileCall rest = call;
    rest.x += 3 * call.ldx;
    rest.c = call.c.from(3, 0);
    rest.total += 3 * call.ld_total;
    tile<Mode, kBits, kTokens - 3>(rest, set);
  } else if (call.quads == 8) {
    tile_bytes<kNarrow, 8, kTokens>(call, set);
  } else {
    tile_bytes<kNarrow, 4, kTokens>(call, set);
  }
}

template <class Mode, int kBits, int kTokens = kTileTokens>
void tiles(const TileCall& call, int tokens, int set, int sets) {
  if constexpr (kTokens > 1)
    if (tokens < kTokens) return tiles<Mode, kBits, kTokens - 1>(call, tokens, set, sets);
  tile<Mode, kBits, kTokens>(call, set);
}

// Activations k .. k + 15 to their row's data (cpu/linear/act.h).
HEARTH_INLINE void store_s16(std::byte* data, int64_t k, int64_t, Ints v) { store_pairs(data + 2 * k, v); }
HEARTH_INLINE void store_s8(std::byte* data, int64_t k, int64_t plane, Ints v) {
  store_low_bytes(data + k, v);
  store_pairs(data + plane + 2 * k, v);
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
