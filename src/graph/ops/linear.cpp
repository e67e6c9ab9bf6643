// linear: y[n] = r(sum_k x[k] W[n, k]), then with a bias y = r(y + b[n]); a result of type f32 leaves the sum
// unrounded.
//   in: x [M, K], W [N, K], b [N] or none; out: [M, N]
#include <algorithm>
#include <thread>

#include "graph/ops/common.h"
#include "graph/ops/linear_reference.h"

namespace hearth::graph {

void linear_reference(const RefCall& c, const RefValue& x, const RefValue& weight, const RefValue* bias, bool f32,
                      RefValue& y) {
  const PackedTensor& w = *weight.packed;
  const auto rows = [&](int64_t begin, int64_t end) {
    std::vector<float> decoded(static_cast<size_t>(w.K));
    for (int64_t n = begin; n < end; ++n) {
      decode_row(w, n, decoded);
      for (int64_t m = 0; m < x.rows; ++m) {
        const float* in = x.row(m);
        double sum[4] = {};  // four chains: the order of fp64 sums is far below every bound
        int64_t k = 0;
        for (; k + 4 <= w.K; k += 4)
          for (int64_t i = 0; i < 4; ++i) sum[i] += double{in[k + i]} * decoded[static_cast<size_t>(k + i)];
        for (; k < w.K; ++k) sum[0] += double{in[k]} * decoded[static_cast<size_t>(k)];
        float out = static_cast<float>((sum[0] + sum[1]) + (sum[2] + sum[3]));
        if (!f32) out = c.r(out);
        if (bias) out = f32 ? out + bias->row(0)[n] : c.r(out + bias->row(0)[n]);
        y.row(m)[n] = out;
      }
    }
  };
  const int64_t threads = std::min(c.threads, w.N / 64 + 1);
  std::vector<std::jthread> workers;
  for (int64_t t = 1; t < threads; ++t) workers.emplace_back(rows, w.N * t / threads, w.N * (t + 1) / threads);
  rows(0, w.N / threads);
}

void require_linear(const OpView& v, size_t x, size_t weight, size_t bias) {
  const ValueInfo &in = v.in(x), &w = v.in(weight);
  require(w.role == Role::weight && w.rows == Rows::fixed, v, "the weight is no matrix");
  require(in.cols == w.cols, v, "weight is [{}, {}] but x has K = {}", w.rows_fixed, w.cols, in.cols);
  require(!v.has(bias) || v.in(bias).cols == w.rows_fixed, v, "weight is [{}, {}] but the bias has {} values",
          w.rows_fixed, w.cols, v.has(bias) ? v.in(bias).cols : 0);
}

Cost linear_cost(const OpView& v, const Extents& e) {
  Cost c = streaming_cost(v, e, 0);
  for (const ValueId id : v.op.in)
    if (id != kNone && v.program.value(id).role == Role::weight && v.program.value(id).rows_fixed > 1)
      c.flops += 2 * rows_of(v.in(0), e) * v.program.value(id).rows_fixed * v.program.value(id).cols;
  return c;
}

const OpInfo kLinear = {
    .name = "linear",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require_linear(v, 0, 1, 2);
      return {like(v, v.in(0), v.in(1).rows_fixed, v.attrs().f32_out)};
    },
    .cost = linear_cost,
    .reference =
        [](const RefCall& c) {
          const bool f32 = c.program.value(c.op.out[0]).dtype == DType::f32;
          linear_reference(c, c.in(0), c.in(1), c.has(2) ? &c.in(2) : nullptr, f32, c.out());
        },
};

}  // namespace hearth::graph
