// act: y = r(f(x)).   gated_act: y = r(r(f(gate)) * up).   softcap: y = cap tanh(x / cap), on fp32 logits.
// gelu is the erf form, gelu_tanh the tanh form with sqrt(2 / pi) and 0.044715 (Hendrycks & Gimpel 2016).
#include <cmath>
#include <numbers>

#include "graph/ops/common.h"

namespace hearth::graph {

double activate(Activation f, double x) {
  switch (f) {
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::gelu: return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::relu: return x > 0 ? x : 0;
    case Activation::relu2: return x > 0 ? x * x : 0;
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
  }
  return x;
}

const OpInfo kAct = {
    .name = "act",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> { return {like(v, v.in(0), v.in(0).cols)}; },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 8); },
    .reference =
        [](const RefCall& c) {
          for (size_t i = 0; i < c.out().data.size(); ++i)
            c.out().data[i] = c.r(static_cast<float>(activate(c.op.attrs.act, c.in(0).data[i])));
        },
};

const OpInfo kGatedAct = {
    .name = "gated_act",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require(v.in(0).cols == v.in(1).cols && v.in(0).rows == v.in(1).rows, v, "gate has {} columns, up has {}",
              v.in(0).cols, v.in(1).cols);
      return {like(v, v.in(0), v.in(0).cols)};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 9); },
    .reference =
        [](const RefCall& c) {
          for (size_t i = 0; i < c.out().data.size(); ++i) {
            const float gate = c.r(static_cast<float>(activate(c.op.attrs.act, c.in(0).data[i])));
            c.out().data[i] = c.r(gate * c.in(1).data[i]);
          }
        },
};

const OpInfo kSoftcap = {
    .name = "softcap",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require(v.attrs().cap > 0, v, "cap is {}, it must be positive", v.attrs().cap);
      return {like(v, v.in(0), v.in(0).cols, v.in(0).dtype == DType::f32)};
    },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 8); },
    .reference =
        [](const RefCall& c) {
          const double cap = c.op.attrs.cap;
          const bool f32 = c.program.value(c.op.out[0]).dtype == DType::f32;
          for (size_t i = 0; i < c.out().data.size(); ++i) {
            const float y = static_cast<float>(cap * std::tanh(c.in(0).data[i] / cap));
            c.out().data[i] = f32 ? y : c.r(y);
          }
        },
};

}  // namespace hearth::graph
