// Integer dots over planes of signed bytes (vpdpbusd or its portable twin), and their register tile.
namespace hearth::cpu::HEARTH_ISA::matrix {

HEARTH_INLINE uint32_t dword_at(const std::byte* p) {
  uint32_t x;
  __builtin_memcpy(&x, p, 4);
  return x;
}

// v = 256 hi + lo in two planes. A sum of at most 128 values: |hi sum| * 256 <= 128 * 255 * 127 * 256 < 2^31.
struct S16 {
  static constexpr bool kGroupScale = false;
  static constexpr bool kOneRow = true;  // has one_row()
  static constexpr int kPlanes = 2, kQuadX = 4, kQuadBytes = 64;
  struct Sum {
    Ints hi, lo;
  };
  static HEARTH_INLINE const std::byte* data(const Share& a, int64_t m) {
    return a.act + m * a.layout.row + a.layout.data;
  }
  static HEARTH_INLINE Sum zero() { return {fill_ints(0), fill_ints(0)}; }
  template <int kBits, int Q>
  static HEARTH_INLINE Ints prepare(const uint8_t* unit) {
    return quad<kBits, Q>(unit);
  }
  template <int kBits, int Q>
  static HEARTH_INLINE void dot(Sum& s, const Ints& w, const std::byte* x, int64_t plane) {
    dot_bytes(s.hi, w, dword_at(x));
    dot_bytes(s.lo, w, dword_at(x + plane));
  }
  static HEARTH_INLINE Ints total(const Sum& s, int32_t init) {
    return add(add(shift<-8>(s.hi), s.lo), fill_ints(static_cast<uint32_t>(init)));
  }
};

struct S8Planes {
  static constexpr bool kGroupScale = true;
  static constexpr int kPlanes = 1, kQuadX = 4, kQuadBytes = 64;
  using Sum = Ints;
  static HEARTH_INLINE const std::byte* data(const Share& a, int64_t m) { return S16::data(a, m); }
  static HEARTH_INLINE Sum zero() { return fill_ints(0); }
  template <int kBits, int Q>
  static HEARTH_INLINE Ints prepare(const uint8_t* unit) {
    return quad<kBits, Q>(unit);
  }
  template <int kBits, int Q>
  static HEARTH_INLINE void dot(Sum& s, const Ints& w, const std::byte* x, int64_t) {
    dot_bytes(s, w, dword_at(x));
  }
  static HEARTH_INLINE Ints total(const Sum& s, int32_t init) { return add(s, fill_ints(static_cast<uint32_t>(init))); }
};

template <int>
using S8 = S8Planes;

// The panel is [quad][set].
template <class Mode>
HEARTH_INLINE int64_t set_stride(int64_t) {
  return 64;
}
template <class Mode>
HEARTH_INLINE int64_t quad_stride(int sets) {
  return 64 * sets;
}
template <class Mode>
HEARTH_INLINE void store_quad(uint8_t* p, const Ints& w) {
  store_ints(p, w);
}

// s16 runs its hi plane, shifts and runs its lo plane into the same sums.
template <class Mode, int kTokens, int kSets>
__attribute__((noinline)) void tile(const TileCall& call) {
  const uint8_t* panel = call.panel;
  const float* fold = call.fold;
  const std::byte* x = call.x;
  const Constants c = call.c;
  const int64_t folds = call.folds, quads = call.quads, ldx = call.ldx, ld_total = call.ld_total;
  const bool has_bias = call.has_bias, has_zero = call.has_zero;
  float* total = call.total;
  for (int64_t f = 0; f < folds; ++f, fold += kSets * 32) {
    Ints sum[kTokens][kSets];
    const auto cells = [](auto&& g) __attribute__((always_inline)) {
      each<0, kTokens>([&]<int t>() __attribute__((always_inline)) {
        each<0, kSets>([&]<int s>() __attribute__((always_inline)) { g.template operator()<t, s>(); });
      });
    };
    const auto run = [&](const std::byte* at) __attribute__((always_inline)) {
#pragma GCC unroll 1
      for (int64_t q = 0; q < quads; ++q, at += 4) {
        const uint8_t* w = panel + q * kSets * 64;
        Ints weights[kSets];
        each<0, kSets>([&]<int s>() __attribute__((always_inline)) { weights[s] = load_ints(w + s * 64); });
        cells([&]<int t, int s>()
                  __attribute__((always_inline)) { dot_bytes(sum[t][s], weights[s], dword_at(at + t * ldx)); });
      }
    };
    cells([&]<int t, int s>() __attribute__((always_inline)) { sum[t][s] = fill_ints(0); });
    run(x);
    if constexpr (Mode::kPlanes == 2) {
      cells([&]<int t, int s>() __attribute__((always_inline)) { sum[t][s] = shift<-8>(sum[t][s]); });
      run(x + call.plane);
    }
    cells([&]<int t, int s>() __attribute__((always_inline)) { pin(sum[t][s]); });
    const auto finish_fold = [&]<bool kBias, bool kZero>() __attribute__((always_inline)) {
      cells([&]<int t, int s>() __attribute__((always_inline)) {
        float* out = total + t * ld_total + s * 16;
        const int64_t i = c.at(t, f);
        if constexpr (kZero) sum[t][s] = add(sum[t][s], fill_ints(static_cast<uint32_t>(c.init[i])));
        Floats scale = load_floats(fold + s * 32);
        if constexpr (Mode::kGroupScale) scale = mul(scale, fill_floats(c.sx[i]));
        Floats v = fma(scale, to_floats(sum[t][s]), load_floats(out));
        if constexpr (kBias) v = fma(load_floats(fold + s * 32 + 16), fill_floats(c.X[i]), v);
        store_floats(out, v);
      });
    };
    if (has_bias) finish_fold.template operator()<true, false>();
    else if (has_zero) finish_fold.template operator()<false, true>();
    else finish_fold.template operator()<false, false>();
    panel += quads * kSets * 64;
    x += quads * 4;
  }
}

// Activations k .. k + 15 to their row's data (cpu/linear/act.h): v = 256 hi + lo with lo in -128 .. 127.
HEARTH_INLINE void store_s16(std::byte* data, int64_t k, int64_t plane, const Ints& v) {
  store_low_bytes(data + k, shift<8>(add(v, fill_ints(128))));
  store_low_bytes(data + k + plane, v);
}
HEARTH_INLINE void store_s8(std::byte* data, int64_t k, int64_t, const Ints& v) { store_low_bytes(data + k, v); }

}  // namespace hearth::cpu::HEARTH_ISA::matrix
