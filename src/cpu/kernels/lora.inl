// The two products of lora by slot: t = x A, y = r(y + r(scale * (t B))) (DESIGN 4.2).
//   x [M, K], y [M, n] fp32, rows picked by number     A [blocks, K, 16], B [blocks, R, 32] fp32, zeros at their ends
// Faithful: fp32 sums in a fixed order, whatever the instruction set, the number of rows and how they are blocked: over
// k four fma chains (k mod 4), then (c0 + c1) + (c2 + c3); over r one chain, ascending. A and B are read once for every
// kLoraRows rows, in ascending order and asked for 2 KiB ahead (ADR 0007).
namespace hearth::cpu::HEARTH_ISA {

constexpr int kLoraRows = kTileVecs;  // at once: four chains a row must fit the registers
constexpr int64_t kLoraAhead = 512;   // floats
static_assert(Vec::width == 16);

HEARTH_INLINE Vec load_ahead(const float* p) {
  __builtin_prefetch(p + kLoraAhead);
  return load(p);
}

template <int kRows>
HEARTH_INLINE void lora_down_rows(const LoraDown& c, int64_t j) {
  const float* x[kRows];
  for (int m = 0; m < kRows; ++m) x[m] = c.x + c.rows[j + m] * c.ldx;
  for (int64_t block = 0; block < c.blocks; ++block) {
    Vec sum[kRows][4];
    for (int m = 0; m < kRows; ++m)
      for (int chain = 0; chain < 4; ++chain) sum[m][chain] = zero();
    const float* a = c.a + block * c.K * 16;
    int64_t k = 0;
    for (; k + 4 <= c.K; k += 4)
      for (int chain = 0; chain < 4; ++chain) {
        const Vec w = load_ahead(a + (k + chain) * 16);
        for (int m = 0; m < kRows; ++m) sum[m][chain] = fma(fill(x[m][k + chain]), w, sum[m][chain]);
      }
    for (int chain = 0; k < c.K; ++k, ++chain) {
      const Vec w = load(a + k * 16);
      for (int m = 0; m < kRows; ++m) sum[m][chain] = fma(fill(x[m][k]), w, sum[m][chain]);
    }
    for (int m = 0; m < kRows; ++m)
      store(c.t + (j + m) * c.ldt + block * 16, (sum[m][0] + sum[m][1]) + (sum[m][2] + sum[m][3]));
  }
}

inline void lora_down(const LoraDown& c) noexcept {
  int64_t j = 0;
  for (; j + kLoraRows <= c.count; j += kLoraRows) lora_down_rows<kLoraRows>(c, j);
  for (; j < c.count; ++j) lora_down_rows<1>(c, j);
}

HEARTH_INLINE void lora_finish(const LoraUp& c, float* y, int64_t n, Vec sum) {
  sum = round_to(c.r, sum * fill(c.scale));
  if (n >= 16) store(y, round_to(c.r, load(y) + sum));
  else if (n > 0) store_part(y, round_to(c.r, load_part(y, n) + sum), n);
}

template <int kRows>
HEARTH_INLINE void lora_up_rows(const LoraUp& c, int64_t j) {
  const float* b = c.b;
  for (int64_t i = 0; i < c.n; i += 32) {
    Vec sum[kRows][2];
    for (int m = 0; m < kRows; ++m) sum[m][0] = sum[m][1] = zero();
    for (int64_t r = 0; r < c.R; ++r, b += 32) {
      const Vec low = load_ahead(b), high = load_ahead(b + 16);
      for (int m = 0; m < kRows; ++m) {
        const Vec t = fill(c.t[(j + m) * c.ldt + r]);
        sum[m][0] = fma(t, low, sum[m][0]);
        sum[m][1] = fma(t, high, sum[m][1]);
      }
    }
    for (int m = 0; m < kRows; ++m)
      for (int v = 0; v < 2; ++v) lora_finish(c, c.y + c.rows[j + m] * c.ldy + i + 16 * v, c.n - i - 16 * v, sum[m][v]);
  }
}

inline void lora_up(const LoraUp& c) noexcept {
  int64_t j = 0;
  for (; j + 2 * kLoraRows <= c.count; j += 2 * kLoraRows) lora_up_rows<2 * kLoraRows>(c, j);
  for (; j < c.count; ++j) lora_up_rows<1>(c, j);
}

}  // namespace hearth::cpu::HEARTH_ISA
