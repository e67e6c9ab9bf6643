// rms_norm: u = r(x / sqrt(mean(x^2) + eps)), y = r(u * w), y = u without w   (Zhang & Sennrich 2019)
// layer_norm: y = r((x - mean) / sqrt(var + eps) * w + b)                      (Ba et al. 2016)
// One row of n values; y may be x. Sums in fp32: 32 chains (d mod 32), folded d with d + 16, then the tree of
// reduce_add. Bounded: n / 32 + 5 roundings in a sum of n terms, 1 / sqrt by two more.
namespace hearth::cpu::HEARTH_ISA {

struct SquareTerm {
  Vec mean;
  HEARTH_INLINE Vec operator()(Vec x, Vec sum) const {
    const Vec t = x - mean;
    return fma(t, t, sum);
  }
};
struct PlainTerm {
  HEARTH_INLINE Vec operator()(Vec x, Vec sum) const { return sum + x; }
};

struct NormOp {
  Vec inverse;
  const float* w;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t d) const { return round_to(r, round_to(r, x * inverse) * load(w + d)); }
  HEARTH_INLINE Vec part(Vec x, int64_t d, int64_t n) const {
    return round_to(r, round_to(r, x * inverse) * load_part(w + d, n));
  }
};
struct LayerNormOp {
  Vec mean, inverse;
  const float *w, *b;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t d) const {
    const Vec u = (x - mean) * inverse;
    return round_to(r, b ? fma(u, load(w + d), load(b + d)) : u * load(w + d));
  }
  HEARTH_INLINE Vec part(Vec x, int64_t d, int64_t n) const {
    const Vec u = (x - mean) * inverse;
    return round_to(r, b ? fma(u, load_part(w + d, n), load_part(b + d, n)) : u * load_part(w + d, n));
  }
};

// Lanes beyond n add nothing.
template <class Term>
HEARTH_INLINE Vec add_part(const float* x, int64_t n, const Term& term, Vec sum) {
  return select(greater(ifill(static_cast<int32_t>(n)), lane_numbers()), term(load_part(x, n), sum), sum);
}

template <class Term>
HEARTH_INLINE float sum_row(const float* x, int64_t n, const Term& term) {
  Vec even = zero(), odd = zero();
  int64_t d = 0;
  for (; d + 32 <= n; d += 32) {
    even = term(load(x + d), even);
    odd = term(load(x + d + 16), odd);
  }
  if (d + 16 <= n) {
    even = term(load(x + d), even);
    d += 16;
    if (d < n) odd = add_part(x + d, n - d, term, odd);
  } else if (d < n) {
    even = add_part(x + d, n - d, term, even);
  }
  return reduce_add(even + odd);
}

inline void rms_norm(const float* x, const float* w, float* y, int64_t n, float eps, DType r) noexcept {
  const float mean = sum_row(x, n, SquareTerm{zero()}) / static_cast<float>(n);
  const Vec inverse = fill(1.0f / __builtin_sqrtf(mean + eps));
  if (w) for_vecs(x, y, n, NormOp{inverse, w, r});
  else for_vecs(x, y, n, ScaleOp{inverse, r});
}

inline void layer_norm(const float* x, const float* w, const float* b, float* y, int64_t n, float eps,
                       DType r) noexcept {
  const float mean = sum_row(x, n, PlainTerm{}) / static_cast<float>(n);
  const float variance = sum_row(x, n, SquareTerm{fill(mean)}) / static_cast<float>(n);
  const Vec inverse = fill(1.0f / __builtin_sqrtf(variance + eps));
  for_vecs(x, y, n, LayerNormOp{fill(mean), inverse, w, b, r});
}

}  // namespace hearth::cpu::HEARTH_ISA
