// rope: pairs (x1, x2) -> r(x1 c - x2 s), r(x1 s + x2 c); one head of Dh values, y may be x.
//   cosine, sine  [rot / 2]; stride 0: pairs (2i, 2i + 1), else (i, i + stride). Other columns are copied.
// Faithful: products and sums rounded one by one, as the definition does.
namespace hearth::cpu::HEARTH_ISA {

inline void rope(const float* x, const float* cosine, const float* sine, float* y, const RopeShape& shape,
                 DType r) noexcept {
  const int64_t half = shape.rot / 2;
  if (shape.pair_stride == 0) {
    for (int64_t i = 0; i < half; ++i) {
      const float x1 = x[2 * i], x2 = x[2 * i + 1];
      y[2 * i] = hearth::round_to(r, x1 * cosine[i] - x2 * sine[i]);
      y[2 * i + 1] = hearth::round_to(r, x1 * sine[i] + x2 * cosine[i]);
    }
    if (y != x)
      for (int64_t d = shape.rot; d < shape.Dh; ++d) y[d] = x[d];
    return;
  }
  int64_t i = 0;
  for (; i + Vec::width <= half; i += Vec::width) {
    const Vec x1 = load(x + i), x2 = load(x + i + shape.pair_stride), c = load(cosine + i), s = load(sine + i);
    store(y + i, round_to(r, x1 * c - x2 * s));
    store(y + i + shape.pair_stride, round_to(r, x1 * s + x2 * c));
  }
  if (i < half) {
    const int64_t n = half - i;
    const Vec x1 = load_part(x + i, n), x2 = load_part(x + i + shape.pair_stride, n);
    const Vec c = load_part(cosine + i, n), s = load_part(sine + i, n);
    store_part(y + i, round_to(r, x1 * c - x2 * s), n);
    store_part(y + i + shape.pair_stride, round_to(r, x1 * s + x2 * c), n);
  }
  if (y != x) {
    for (int64_t d = half; d < shape.pair_stride; ++d) y[d] = x[d];
    for (int64_t d = shape.pair_stride + half; d < shape.Dh; ++d) y[d] = x[d];
  }
}

}  // namespace hearth::cpu::HEARTH_ISA
