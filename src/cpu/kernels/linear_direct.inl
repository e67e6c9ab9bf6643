// Integer cores for a few rows of x: each quad is unpacked once in registers and meets all of them.
//
//   total = fma(s, float(isum), total), then with a bias total = fma(b, X, total); folds ascending (cpu/linear.h)
//   Bits equal those of the panels: integer sums are exact, the folds are the same operations.
// Moves the packed bytes of the blocks once, in ascending order.
namespace hearth::cpu::HEARTH_ISA::matrix {

// Folds of a cell: kHalf (groups of 16): two, each of half a unit. Otherwise one a unit (s8) or one a cell (s16).
template <class Mode, int kBits, bool kHalf, int kRows>
void direct_block(const Share& a, const uint8_t* block, int64_t m, const Constants& c, float* total) {
  for (int t = 0; t < kRows; ++t)
    for (int s = 0; s < 2; ++s) store_floats(total + t * kBlockRows + s * kSetRows, fill_floats(0));
  const Shape& shape = a.shape;
  const int units = shape.units(), parts = kHalf ? 2 : Mode::kGroupScale ? units : 1;
  const int part_units = kHalf || Mode::kGroupScale ? 1 : units;
  const bool has_bias = shape.has_bias, has_zero = shape.zero != 0;
  const std::byte* x = Mode::data(a, m);
  const int64_t ldx = a.layout.row, plane = a.layout.plane;

  Cells cells(shape, block, 0, a.ahead);
  for (int64_t f = 0; cells.k < a.K; cells.next(), f += parts, x += units * 8 * Mode::kQuadX) {
    cells.enter();
    for (int set = 0; set < 2; ++set) {
      const uint8_t* unit = cells.set(set);
      const std::byte* at = x;
      const auto part = [&]<int kPart>(int p) __attribute__((always_inline)) {
        typename Mode::Sum sum[kRows];
        for (int t = 0; t < kRows; ++t) sum[t] = Mode::zero();
        for (int u = 0; u < part_units; ++u) {
          each<kHalf ? kPart * 4 : 0, kHalf ? kPart * 4 + 4 : 8>([&]<int Q>() __attribute__((always_inline)) {
            const auto w = Mode::template prepare<kBits, Q>(unit);
            for (int t = 0; t < kRows; ++t)
              Mode::template dot<kBits, Q>(sum[t], w, at + t * ldx + Q * Mode::kQuadX, plane);
          });
          if (!kHalf || kPart == 1) {
            unit += kBits * 64;
            at += 8 * Mode::kQuadX;
          }
        }
        const ScaleBias sb = scale_bias(cells, set, kHalf ? kPart : 0);
        for (int t = 0; t < kRows; ++t) {
          const int64_t i = c.at(t, f + p);
          float* out = total + t * kBlockRows + set * kSetRows;
          Floats scale = sb.scale;
          if constexpr (Mode::kGroupScale) scale = mul(scale, fill_floats(c.sx[i]));
          Floats v = fma(scale, to_floats(Mode::total(sum[t], has_zero ? c.init[i] : 0)), load_floats(out));
          if (has_bias) v = fma(sb.bias, fill_floats(c.X[i]), v);
          store_floats(out, v);
        }
      };
      if constexpr (kHalf) {
        part.template operator()<0>(0);
        part.template operator()<1>(1);
      } else {
        for (int p = 0; p < parts; ++p) part.template operator()<0>(p);
      }
    }
  }
}

constexpr int64_t kDirectRows = 8;  // up to here blocks are read, beyond they are unpacked to panels

template <class Mode, int kBits, bool kHalf, int kRows = kDirectMax>
void direct_rows(const Share& a, const uint8_t* block, int64_t m, const Constants& c, int64_t rows, float* total) {
  if constexpr (kRows > 1)
    if (rows < kRows) return direct_rows<Mode, kBits, kHalf, kRows - 1>(a, block, m, c, rows, total);
  if constexpr (kRows == 1 && requires { Mode::kOneRow; } && !Mode::kGroupScale)
    if (one_row<kBits, kHalf>(a, block, m, c, total)) return;
  direct_block<Mode, kBits, kHalf, kRows>(a, block, m, c, total);
}

template <class Mode, int kBits, bool kHalf>
void direct(const Share& a, const Constants& c) {
  alignas(64) float total[kDirectMax * kBlockRows];
  const int64_t block_bytes = a.shape.block_bytes(a.K);
  for (int64_t b = a.block_begin; b < a.block_end; ++b) {
    const uint8_t* block = a.blocks + b * block_bytes;
    for (int64_t m = a.m_begin; m < a.m_end; m += kDirectMax) {
      const int64_t rows = least(kDirectMax, a.m_end - m);
      direct_rows<Mode, kBits, kHalf>(a, block, m, c.from(m - a.m_begin, 0), rows, total);
      for (int64_t t = 0; t < rows; ++t)
        finish(a, m + t, b * kBlockRows, least(kBlockRows, a.N - b * kBlockRows), total + t * kBlockRows);
    }
  }
}

}  // namespace hearth::cpu::HEARTH_ISA::matrix
