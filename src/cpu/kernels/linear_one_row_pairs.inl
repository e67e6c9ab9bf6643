// The s16 core for one row of x without VNNI: what decode runs. The folds are those of linear_direct.inl, so are the
// bits; the sums are the same integers, found with fewer operations.
//   4 bits  the four nibbles of an int16 lane meet x where they stand: n, 16 n, 256 n under masks, the top one shifted.
//           A unit's sums at a scale stay below 2^31: 256 * 15 * 32512 * 8. They shift down exactly.
// Totals of a block's set stay in L1; super-block scales are widened once every 256 k.
namespace hearth::cpu::HEARTH_ISA::matrix {

// Quads [kBegin, kEnd) of a unit, times x, into s.
template <int kBits, int kBegin, int kEnd>
HEARTH_INLINE void add_quads(Ints& s, const uint8_t* unit, const std::byte* x) {
  if constexpr (kBits == 4) {
    static_assert(kBegin == 0 && kEnd == 8);
    const __m256i first = _mm256_set1_epi16(0x000f), second = _mm256_set1_epi16(0x00f0),
                  third = _mm256_set1_epi16(0x0f00);
    __m256i at16[2], at256[2];
    each<0, 4>([&]<int i>() __attribute__((always_inline)) {
      const std::byte* p = x + i * 2 * S16::kQuadX;
      const __m256i x0 = broadcast(p), x2 = broadcast(p + 4), x1 = broadcast(p + 8), x3 = broadcast(p + 12);
      each<0, 2>([&]<int h>() __attribute__((always_inline)) {
        const __m256i w = load256(unit + i * 64 + h * 32);
        __m256i& sum = h == 0 ? s.a : s.b;
        add_pairs(sum, _mm256_and_si256(w, first), x0);
        add_pairs(sum, _mm256_srli_epi16(w, 12), x3);
        if constexpr (i == 0) {
          at16[h] = _mm256_madd_epi16(_mm256_and_si256(w, second), x1);
          at256[h] = _mm256_madd_epi16(_mm256_and_si256(w, third), x2);
        } else {
          add_pairs(at16[h], _mm256_and_si256(w, second), x1);
          add_pairs(at256[h], _mm256_and_si256(w, third), x2);
        }
      });
    });
    s = add(s, {_mm256_srai_epi32(at16[0], 4), _mm256_srai_epi32(at16[1], 4)});
    s = add(s, {_mm256_srai_epi32(at256[0], 8), _mm256_srai_epi32(at256[1], 8)});
  } else {
    each<kBegin, kEnd>([&]<int Q>() __attribute__((always_inline)) {
      S16::dot<kBits, Q>(s, S16::prepare<kBits, Q>(unit), x + Q * S16::kQuadX, 0);
    });
  }
}

enum class Tail : uint8_t { f16, lead };  // f16 scales; integers under a lead

template <int kBits, bool kHalf, Tail kTail, bool kBias>
void one_row_block(const Share& a, const uint8_t* block, int64_t m, const Constants& c, float* total) {
  static constexpr Shape shape{.bits = kBits,
                               .group = kHalf ? 16 : 32,
                               .has_bias = kBias,
                               .scale = kTail == Tail::f16 ? ScaleKind::f16
                                        : kBias            ? ScaleKind::u8
                                                           : ScaleKind::i8};
  constexpr bool has_bias = kBias, has_zero = !kBias;
  const std::byte* x = S16::data(a, m);
  alignas(32) float d[kBlockRows], minus_dmin[kBlockRows];
  for (int s = 0; s < 2; ++s) store_floats(total + s * kSetRows, fill_floats(0));
  const int32_t* init = c.init;
  const float* X = c.X;
  for (Cells cells(shape, block, 0); cells.k < a.K; cells.next(), x += 8 * S16::kQuadX) {
    if constexpr (kTail == Tail::lead)
      if (cells.k % kLeadSpan == 0)
        for (int s = 0; s < kBlockRows; s += kSetRows) {
          store_floats(d + s, load_f16(cells.lead + 2 * s));
          if (has_bias) store_floats(minus_dmin + s, negative(load_f16(cells.lead + 2 * (kBlockRows + s))));
        }
    const uint8_t* tail = cells.tail();
    cells.prefetch();
    for (int set = 0; set < 2; ++set) {
      const uint8_t* unit = cells.set(set);
      float* out = total + set * kSetRows;
      const auto fold = [&](Ints s, int sub) __attribute__((always_inline)) {
        const int64_t i = sub * kBlockRows + set * kSetRows;
        Floats scale;
        if constexpr (kTail == Tail::f16) scale = load_f16(tail + 2 * i);
        else scale = mul(load_floats(d + set * kSetRows), has_bias ? load_u8(tail + i) : load_i8(tail + i));
        Floats v = fma(scale, to_floats(s), load_floats(out));
        if (has_bias) {
          const uint8_t* biases = tail + cells.scale_bytes;
          Floats bias;
          if constexpr (kTail == Tail::f16) bias = load_f16(biases + 2 * i);
          else bias = mul(load_floats(minus_dmin + set * kSetRows), load_u8(biases + i));
          v = fma(bias, fill_floats(X[sub * c.ld]), v);
        }
        store_floats(out, v);
      };
      const auto start = [&](int sub) __attribute__((always_inline)) {
        return fill_ints(has_zero ? static_cast<uint32_t>(init[sub * c.ld]) : 0);
      };
      if constexpr (kHalf) {
        Ints low = start(0);
        add_quads<kBits, 0, 4>(low, unit, x);
        fold(low, 0);
        Ints high = start(1);
        add_quads<kBits, 4, 8>(high, unit, x);
        fold(high, 1);
      } else {
        Ints s = start(0);
        add_quads<kBits, 0, 8>(s, unit, x);
        fold(s, 0);
      }
    }
    init += (kHalf ? 2 : 1) * c.ld;
    X += (kHalf ? 2 : 1) * c.ld;
  }
}

// As direct_block() for one row, where it is worth its code: 4 to 8 bits of the GGUF formats, which have a bias or a
// zero point. False: not done.
template <int kBits, bool kHalf>
bool one_row(const Share& a, const uint8_t* block, int64_t m, const Constants& c, float* total) {
  const Shape& s = a.shape;
  if (s.group != (kHalf ? 16 : 32)) return false;
  const auto is = [&](Tail tail, bool bias) {
    return tail == (s.has_lead() ? Tail::lead : Tail::f16) && (s.has_lead() || s.scale == ScaleKind::f16) &&
           bias == s.has_bias && bias == (s.zero == 0);
  };
  const auto with = [&]<Tail kTail, bool kBias>() {
    if (!is(kTail, kBias)) return false;
    one_row_block<kBits, kHalf, kTail, kBias>(a, block, m, c, total);
    return true;
  };
  if constexpr (kHalf) return kBits == 6 && with.template operator()<Tail::lead, false>();
  else if constexpr (kBits == 4 || kBits == 5)
    return with.template operator()<Tail::f16, true>() || with.template operator()<Tail::f16, false>() ||
           with.template operator()<Tail::lead, true>();
  else if constexpr (kBits == 8)
    return with.template operator()<Tail::f16, false>() || with.template operator()<Tail::lead, false>();
  else return false;
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
