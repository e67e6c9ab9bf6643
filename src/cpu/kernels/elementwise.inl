// Ops over n values of a row; y may be x. Faithful: r() stands where the op definitions put it.
namespace hearth::cpu::HEARTH_ISA {

// Calls step(offset, load, store) for whole Vecs, then for the rest. A macro-free loop that every op below shares.
template <class Op>
HEARTH_INLINE void for_vecs(const float* x, float* y, int64_t n, const Op& op) {
  int64_t d = 0;
  for (; d + Vec::width <= n; d += Vec::width) store(y + d, op.whole(load(x + d), d));
  if (d < n) store_part(y + d, op.part(load_part(x + d, n - d), d, n - d), n - d);
}

struct ScaleOp {
  Vec c;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t) const { return round_to(r, x * c); }
  HEARTH_INLINE Vec part(Vec x, int64_t d, int64_t) const { return whole(x, d); }
};
struct AddOp {
  const float* z;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t d) const { return round_to(r, x + load(z + d)); }
  HEARTH_INLINE Vec part(Vec x, int64_t d, int64_t n) const { return round_to(r, x + load_part(z + d, n)); }
};
struct MulOp {
  const float* z;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t d) const { return round_to(r, x * load(z + d)); }
  HEARTH_INLINE Vec part(Vec x, int64_t d, int64_t n) const { return round_to(r, x * load_part(z + d, n)); }
};
struct RoundOp {
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t) const { return round_to(r, x); }
  HEARTH_INLINE Vec part(Vec x, int64_t, int64_t) const { return round_to(r, x); }
};
struct ActOp {
  graph::Activation f;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t) const { return round_to(r, activate(f, x)); }
  HEARTH_INLINE Vec part(Vec x, int64_t, int64_t) const { return round_to(r, activate(f, x)); }
};
struct GatedActOp {
  graph::Activation f;
  const float* up;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t d) const { return round_to(r, round_to(r, activate(f, x)) * load(up + d)); }
  HEARTH_INLINE Vec part(Vec x, int64_t d, int64_t n) const {
    return round_to(r, round_to(r, activate(f, x)) * load_part(up + d, n));
  }
};
struct SoftcapOp {  // cap tanh(x / cap)
  Vec cap;
  DType r;
  HEARTH_INLINE Vec whole(Vec x, int64_t) const { return round_to(r, cap * tanh(x / cap)); }
  HEARTH_INLINE Vec part(Vec x, int64_t d, int64_t) const { return whole(x, d); }
};

inline void scale(const float* x, float c, float* y, int64_t n, DType r) noexcept {
  for_vecs(x, y, n, ScaleOp{fill(c), r});
}
inline void add(const float* x, const float* z, float* y, int64_t n, DType r) noexcept {
  for_vecs(x, y, n, AddOp{z, r});
}
inline void mul(const float* x, const float* z, float* y, int64_t n, DType r) noexcept {
  for_vecs(x, y, n, MulOp{z, r});
}
inline void round_row(const float* x, float* y, int64_t n, DType r) noexcept { for_vecs(x, y, n, RoundOp{r}); }
inline void softcap(const float* x, float cap, float* y, int64_t n, DType r) noexcept {
  for_vecs(x, y, n, SoftcapOp{fill(cap), r});
}
inline void act(graph::Activation f, const float* x, float* y, int64_t n, DType r) noexcept {
  for_vecs(x, y, n, ActOp{f, r});
}
inline void gated_act(graph::Activation f, const float* gate, const float* up, float* y, int64_t n, DType r) noexcept {
  for_vecs(gate, y, n, GatedActOp{f, up, r});
}

// y[i] += sum over k of x[k] * w[k, i], k ascending, one fma chain an output; rows of w are ldw apart. lora's products.
inline void accumulate_rows(const float* x, const float* w, int64_t ldw, float* y, int64_t K, int64_t n) noexcept {
  int64_t i = 0;
  for (; i + Vec::width <= n; i += Vec::width) {
    Vec sum = load(y + i);
    for (int64_t k = 0; k < K; ++k) sum = fma(fill(x[k]), load(w + k * ldw + i), sum);
    store(y + i, sum);
  }
  if (i < n) {
    Vec sum = load_part(y + i, n - i);
    for (int64_t k = 0; k < K; ++k) sum = fma(fill(x[k]), load_part(w + k * ldw + i, n - i), sum);
    store_part(y + i, sum, n - i);
  }
}

}  // namespace hearth::cpu::HEARTH_ISA
