// rms_norm (Zhang & Sennrich 2019): u = r(x / sqrt(mean(x^2) + eps)), y = r(u * w), y = u without w; over the last
//   `width` columns at a time (per head) or over all.   in: x [M, D], w [width] or none
// layer_norm (Ba et al. 2016): y = r((x - mean) / sqrt(var + eps) * w + b).   in: x, w, b or none
#include <cmath>

#include "graph/ops/common.h"

namespace hearth::graph {

static void rms_reference(const RefCall& c) {
  const RefValue& x = c.in(0);
  RefValue& y = c.out();
  const int64_t width = c.op.attrs.width ? c.op.attrs.width : x.cols;
  const float* w = c.has(1) ? c.in(1).row(0) : nullptr;
  for (int64_t m = 0; m < x.rows; ++m)
    for (int64_t begin = 0; begin < x.cols; begin += width) {
      const float* in = x.row(m) + begin;
      float* out = y.row(m) + begin;
      double sum = 0;
      for (int64_t d = 0; d < width; ++d) sum += double{in[d]} * in[d];
      const double inverse = 1 / std::sqrt(sum / static_cast<double>(width) + double{c.op.attrs.eps});
      for (int64_t d = 0; d < width; ++d) {
        const float u = c.r(static_cast<float>(in[d] * inverse));
        out[d] = w ? c.r(u * w[d]) : u;
      }
    }
}

static void layer_reference(const RefCall& c) {
  const RefValue& x = c.in(0);
  const float *w = c.in(1).row(0), *b = c.has(2) ? c.in(2).row(0) : nullptr;
  for (int64_t m = 0; m < x.rows; ++m) {
    const float* in = x.row(m);
    double mean = 0, variance = 0;
    for (int64_t d = 0; d < x.cols; ++d) mean += in[d];
    mean /= static_cast<double>(x.cols);
    for (int64_t d = 0; d < x.cols; ++d) variance += (in[d] - mean) * (in[d] - mean);
    const double inverse = 1 / std::sqrt(variance / static_cast<double>(x.cols) + double{c.op.attrs.eps});
    for (int64_t d = 0; d < x.cols; ++d)
      c.out().row(m)[d] = c.r(static_cast<float>((in[d] - mean) * inverse * w[d] + (b ? b[d] : 0.0f)));
  }
}

const OpInfo kRmsNorm = {
    .name = "rms_norm",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      const int64_t D = v.in(0).cols, width = v.attrs().width ? v.attrs().width : D;
      require(width > 0 && D % width == 0, v, "x has D = {}, which is no multiple of the width {}", D, width);
      require(!v.has(1) || v.in(1).cols == width, v, "x is normed over {} columns, the weight has {}", width,
              v.has(1) ? v.in(1).cols : 0);
      return {like(v, v.in(0), D)};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 4); },
    .reference = rms_reference,
};

const OpInfo kLayerNorm = {
    .name = "layer_norm",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      const int64_t D = v.in(0).cols;
      require(v.in(1).cols == D, v, "x has D = {}, the weight has {}", D, v.in(1).cols);
      require(!v.has(2) || v.in(2).cols == D, v, "x has D = {}, the bias has {}", D, v.has(2) ? v.in(2).cols : 0);
      return {like(v, v.in(0), D)};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 8); },
    .reference = layer_reference,
};

}  // namespace hearth::graph
