// The s16 core for one row of x: what decode runs. The shape is known at compile time, which is worth a third of the
// time. The folds are those of linear_direct.inl, so are the bits; add_unit() is of instruction sets that know a
// shorter way. Totals of a block's set stay in L1; so do scales of 256 k under a lead, once widened.
namespace hearth::cpu::HEARTH_ISA::matrix {

enum class Tail : uint8_t { f16, bf16, lead };  // plain scales; integers under a lead: six bits with a bias, or i8

template <int kBits, int kGroup, Tail kTail, bool kBias>
constexpr Shape kShape{.bits = kBits,
                       .group = kGroup,
                       .has_bias = kBias,
                       .scale = kTail == Tail::f16    ? ScaleKind::f16
                                : kTail == Tail::bf16 ? ScaleKind::bf16
                                : kBias               ? ScaleKind::u6
                                                      : ScaleKind::i8};

template <Tail kTail>
HEARTH_INLINE Floats load_plain(const uint8_t* p) {
  if constexpr (kTail == Tail::f16) return load_f16(p);
  else return load_bf16(p);
}

// Quads [kBegin, kEnd) of a unit, times x, into s.
template <int kBits, int kBegin, int kEnd>
HEARTH_INLINE void add_quads(S16::Sum& s, const uint8_t* unit, const std::byte* x, int64_t plane) {
  if constexpr (kEnd - kBegin == 8 && requires { add_unit<kBits>(s, unit, x); }) add_unit<kBits>(s, unit, x);
  else
    each<kBegin, kEnd>([&]<int Q>() __attribute__((always_inline)) {
      S16::dot<kBits, Q>(s, S16::prepare<kBits, Q>(unit), x + Q * S16::kQuadX, plane);
    });
}

template <int kBits, int kGroup, Tail kTail, bool kBias>
void one_row_block(const Share& a, const uint8_t* block, int64_t m, const Constants& c, float* total) {
  static constexpr Shape shape = kShape<kBits, kGroup, kTail, kBias>;
  constexpr int units = shape.units(), parts = shape.subs();
  constexpr bool has_bias = kBias, has_zero = !kBias;
  const std::byte* x = S16::data(a, m);
  alignas(64) float d[kBlockRows];
  for (int s = 0; s < 2; ++s) store_floats(total + s * kSetRows, fill_floats(0));
  const int32_t* init = c.init;
  const float* X = c.X;
  for (Cells cells(shape, block, 0, a.ahead); cells.k < a.K; cells.next(), x += units * 8 * S16::kQuadX) {
    if constexpr (kTail == Tail::lead && !kBias)
      if (cells.k % kLeadSpan == 0)
        for (int s = 0; s < kBlockRows; s += kSetRows) store_floats(d + s, load_f16(cells.lead + 2 * s));
    const uint8_t* tail = cells.tail();
    cells.enter();
    for (int set = 0; set < 2; ++set) {
      const uint8_t* unit = cells.set(set);
      float* out = total + set * kSetRows;
      const auto fold = [&](Ints s, int sub) __attribute__((always_inline)) {
        const int64_t i = sub * kBlockRows + set * kSetRows;
        ScaleBias sb;
        if constexpr (kTail == Tail::lead && kBias) sb = scale_bias(cells, set, sub);
        else if constexpr (kTail == Tail::lead) sb.scale = mul(load_floats(d + set * kSetRows), load_i8(tail + i));
        else {
          sb.scale = load_plain<kTail>(tail + 2 * i);
          if (has_bias) sb.bias = load_plain<kTail>(tail + cells.scale_bytes + 2 * i);
        }
        Floats v = fma(sb.scale, to_floats(s), load_floats(out));
        if (has_bias) v = fma(sb.bias, fill_floats(X[sub * c.ld]), v);
        store_floats(out, v);
      };
      const auto part = [&]<int kBegin, int kEnd>(int sub) __attribute__((always_inline)) {
        S16::Sum s = S16::zero();
        for (int u = 0; u < units; ++u)
          add_quads<kBits, kBegin, kEnd>(s, unit + u * kBits * 64, x + u * 8 * S16::kQuadX, a.layout.plane);
        fold(S16::total(s, has_zero ? init[sub * c.ld] : 0), sub);
      };
      if constexpr (parts == 2) {
        part.template operator()<0, 4>(0);
        part.template operator()<4, 8>(1);
      } else {
        part.template operator()<0, 8>(0);
      }
    }
    init += parts * c.ld;
    X += parts * c.ld;
  }
}

// As direct_block() for one row, for the formats that are worth the code: GGUF with 4 to 8 bits, affine with 4 and 8 in
// groups of 64. False: another one, not done.
template <int kBits, bool kHalf>
bool one_row(const Share& a, const uint8_t* block, int64_t m, const Constants& c, float* total) {
  const auto as = [&]<int kGroup, Tail kTail, bool kBias>() {
    constexpr Shape shape = kShape<kBits, kGroup, kTail, kBias>;
    const Shape& is = a.shape;
    if (is.group != shape.group || is.scale != shape.scale || is.has_bias != kBias || (is.zero == 0) != kBias)
      return false;
    one_row_block<kBits, kGroup, kTail, kBias>(a, block, m, c, total);
    return true;
  };
  if constexpr (kHalf && kBits == 6) {
    return as.template operator()<16, Tail::lead, false>();
  } else if constexpr (!kHalf && (kBits == 4 || kBits == 5)) {
    if (as.template operator()<32, Tail::f16, true>() || as.template operator()<32, Tail::f16, false>() ||
        as.template operator()<32, Tail::lead, true>())
      return true;
  } else if constexpr (kBits == 8) {
    if (as.template operator()<32, Tail::f16, false>() || as.template operator()<32, Tail::lead, false>()) return true;
  }
  if constexpr (kBits == 4 || kBits == 8)
    return as.template operator()<64, Tail::f16, true>() || as.template operator()<64, Tail::bf16, true>();
  return false;
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
