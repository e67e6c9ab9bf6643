// Reading packed weights (cpu/linear/layout.h): quads of a unit as unsigned bytes, scales and biases as fp32.
namespace hearth::cpu::HEARTH_ISA::matrix {

template <int kBegin, int kEnd, class F>
HEARTH_INLINE void each(F&& f) {
  if constexpr (kBegin < kEnd) {
    f.template operator()<kBegin>();
    each<kBegin + 1, kEnd>(f);
  }
}

// Quad Q of a set's unit: lane r holds k 4 Q .. 4 Q + 3 of row r.
template <int kBits, int Q>
HEARTH_INLINE Ints quad(const uint8_t* unit) {
  constexpr int i = Q / 2, j = Q / 4, t = Q % 4, nibble = Q % 2 * 4;
  const auto vector = [unit](int v) __attribute__((always_inline)) { return load_ints(unit + v * 64); };
  if constexpr (kBits == 8) return vector(Q);
  else if constexpr (kBits == 2) return mask(shift<2 * t>(vector(j)), 0x03030303);
  else if constexpr (kBits == 3)
    return mask_or(shift<2 * t>(vector(1 + j)), 0x03030303, mask(shift<Q - 2>(vector(0)), 0x04040404));
  else if constexpr (kBits == 4) return mask(shift<nibble>(vector(i)), 0x0f0f0f0f);
  else if constexpr (kBits == 5)
    return mask_or(shift<nibble>(vector(1 + i)), 0x0f0f0f0f, mask(shift<Q - 4>(vector(0)), 0x10101010));
  else
    return mask_or(shift<nibble>(vector(3 * j + 1 + i % 2)), 0x0f0f0f0f,
                   mask(shift<2 * t - 4>(vector(3 * j)), 0x30303030));
}

// Where a block's cells lie, walked in ascending order.
struct Cells {
  const Shape& shape;
  const int64_t set_bytes, tail_at, scale_bytes, cell_bytes, lead_bytes, span;
  const FetchAhead ahead;
  const uint8_t* lead;
  const uint8_t* cell;
  int64_t k;
  alignas(64) float wide[2][kLeadSpan / kUnit][2 * kSetRows];  // u6: [set][group] scales, then biases

  HEARTH_INLINE Cells(const Shape& s, const uint8_t* block, int64_t k_begin, FetchAhead fetch_ahead)
      : shape(s),
        set_bytes(s.set_bytes()),
        tail_at(2 * s.set_bytes()),
        scale_bytes(s.scale_bytes()),
        cell_bytes(s.cell_bytes()),
        lead_bytes(s.lead_bytes()),
        span(s.span()),
        ahead(fetch_ahead),
        lead(block + s.cell_offset(k_begin)),
        cell(lead + lead_bytes),  // k_begin is a multiple of 256 where there is a lead
        k(k_begin) {}
  HEARTH_INLINE const uint8_t* set(int i) const { return cell + i * set_bytes; }
  HEARTH_INLINE const uint8_t* tail() const { return cell + tail_at; }
  // Of every cell first. Asks for what lies as far ahead of it (next(): of its lead) as the machine wants, every line
  // once a cache; widens six-bit scales.
  HEARTH_INLINE void enter() {
    if (shape.scale == ScaleKind::u6 && k % kLeadSpan == 0) widen();
    fetch(cell, cell_bytes);
  }
  HEARTH_INLINE void next() {
    cell += cell_bytes;
    k += span;
    if (lead_bytes != 0 && k % kLeadSpan == 0) {
      lead = cell;
      cell += lead_bytes;
      fetch(lead, lead_bytes);
    }
  }

 private:
  // d * scale and -(dmin * minimum) of the lead's 256 k.
  HEARTH_INLINE void widen() {
    for (int set = 0; set < 2; ++set) {
      const Floats d = load_f16(lead + 2 * set * kSetRows);
      const Floats minus_dmin = negative(load_f16(lead + 2 * (kBlockRows + set * kSetRows)));
      const uint8_t* six = lead + 4 * kBlockRows + set * kSixBytes;
      const Ints scales = load_ints(six), minima = load_ints(six + 64), upper = load_ints(six + 128);
      each<0, 8>([&]<int g>() __attribute__((always_inline)) {
        const Ints scale = mask_or(shift<4 * g>(scales), 15, mask(shift<2 * g - 4>(upper), 0x30));
        const Ints minimum = mask_or(shift<4 * g>(minima), 15, mask(shift<2 * g + 12>(upper), 0x30));
        store_floats(wide[set][g], mul(d, to_floats(scale)));
        store_floats(wide[set][g] + kSetRows, mul(minus_dmin, to_floats(minimum)));
      });
    }
  }
  HEARTH_INLINE void fetch(const uint8_t* p, int64_t bytes) const {
    if (ahead.l1 == 0) return;
    asm("" : "+r"(bytes));  // stays a loop: unrolled among the loads it streams a tenth slower (ADR 0007)
    if (ahead.l2 == 0) {
      for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + ahead.l1 + i);
    } else {
      for (int64_t i = 0; i < bytes; i += 64) {
        __builtin_prefetch(p + ahead.l2 + i, 0, 2);
        __builtin_prefetch(p + ahead.l1 + i);
      }
    }
  }
};

HEARTH_INLINE Floats plain_scale(ScaleKind kind, const uint8_t* p, int64_t i) {
  if (kind == ScaleKind::f16) return load_f16(p + 2 * i);
  if (kind == ScaleKind::bf16) return load_bf16(p + 2 * i);
  return load_floats(reinterpret_cast<const float*>(p + 4 * i));
}

struct ScaleBias {
  Floats scale, bias;
};
// Of group `sub` of a cell, for the 16 rows of a set.
HEARTH_INLINE ScaleBias scale_bias(const Cells& c, int set, int sub) {
  const Shape& s = c.shape;
  if (s.scale == ScaleKind::u6) {
    const float* wide = c.wide[set][c.k % kLeadSpan / kUnit];
    return {load_floats(wide), load_floats(wide + kSetRows)};
  }
  const uint8_t *scales = c.tail(), *biases = scales + c.scale_bytes;
  const int64_t i = sub * kBlockRows + set * kSetRows;
  if (!s.has_lead())
    return {plain_scale(s.scale, scales, i), s.has_bias ? plain_scale(s.scale, biases, i) : fill_floats(0)};
  const Floats d = load_f16(c.lead + 2 * set * kSetRows);
  if (s.scale == ScaleKind::i8) return {mul(d, load_i8(scales + i)), fill_floats(0)};
  const Floats dmin = load_f16(c.lead + 2 * (kBlockRows + set * kSetRows));
  return {mul(d, load_u8(scales + i)), negative(mul(dmin, load_u8(biases + i)))};
}

// What a fold adds for a row of x besides the dots; [folds][rows of x]: a tile reads its tokens side by side.
struct Constants {
  const int32_t* init;  // -zero * X
  const float* X;       // s16: float(X); s8: sx * float(X); formats with a bias
  const float* sx;      // s8: the scale of x
  int64_t ld;           // rows of x

  HEARTH_INLINE int64_t at(int64_t t, int64_t f) const { return f * ld + t; }
  HEARTH_INLINE Constants from(int64_t t, int64_t f) const {
    const int64_t i = at(t, f);
    return {init + i, X + i, sx + i, ld};
  }
};

// One tile: adds the folds of a chunk to total[t][columns] for its tokens.
//   panel  quads of the chunk (set_stride, quad_stride)    fold  [folds][sets][scale 16, bias 16]
//   x      of token 0 at the chunk's first k, tokens ldx bytes apart      c  of token 0 at the chunk's first fold
struct TileCall {
  const uint8_t* panel;
  const float* fold;
  int64_t folds, quads;  // quads a fold
  const std::byte* x;
  int64_t ldx, plane;
  Constants c;
  bool has_bias, has_zero;
  float* total;
  int64_t ld_total;
};

// y of rows [0, rows) of a block for row m of x; total: sums of the core. v = total sx, + bias, y = v or y + v.
HEARTH_INLINE void finish(const Share& a, int64_t m, int64_t n, int64_t rows, const float* total) {
  float scale = 1;
  if (a.core == Core::s16) __builtin_memcpy(&scale, a.act + m * a.layout.row, 4);
  float* y = a.y + m * a.ldy + n;
  const bool scaled = a.core == Core::s16;
  const float* bias = a.bias ? a.bias + n : nullptr;
  int64_t r = 0;
  for (; r + kSetRows <= rows; r += kSetRows) {
    Floats v = load_floats(total + r);
    if (scaled) v = mul(v, fill_floats(scale));
    if (bias) v = add(v, load_floats(bias + r));
    if (a.accumulate) v = add(load_floats(y + r), v);
    store_floats(y + r, v);
  }
  for (; r < rows; ++r) {
    float v = scaled ? total[r] * scale : total[r];
    if (bias) v = v + bias[r];
    y[r] = a.accumulate ? y[r] + v : v;
  }
}

HEARTH_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace hearth::cpu::HEARTH_ISA::matrix
