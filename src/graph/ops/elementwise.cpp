// scale: y = r(x * r(c)).   add: y = r(x + z).   mul: y = r(x * z), z like x, [M, 1] or a vector [cols].
#include "graph/ops/common.h"

namespace hearth::graph {

static const float* operand_row(const RefValue& z, int64_t m) { return z.rows == 1 ? z.row(0) : z.row(m); }

template <class F>
static void binary(const RefCall& c, F f) {
  const RefValue &x = c.in(0), &z = c.in(1);
  RefValue& y = c.out();
  const bool column = z.cols == 1 && x.cols != 1;
  for (int64_t m = 0; m < y.rows; ++m)
    for (int64_t d = 0; d < y.cols; ++d) y.row(m)[d] = c.r(f(x.row(m)[d], operand_row(z, m)[column ? 0 : d]));
}

static std::vector<ValueInfo> infer_binary(const OpView& v) {
  const ValueInfo &x = v.in(0), &z = v.in(1);
  require(z.role != Role::weight || z.rows_fixed == 1, v, "x has {} columns, the other operand is a matrix of {} rows",
          x.cols, z.rows_fixed);
  const bool vector = z.role == Role::weight && z.cols == x.cols;
  const bool column = z.rows == x.rows && z.cols == 1;
  require(vector || column || (z.rows == x.rows && z.cols == x.cols), v, "x has {} columns, the other operand has {}",
          x.cols, z.cols);
  return {like(v, x, x.cols)};
}

const OpInfo kScale = {
    .name = "scale",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> { return {like(v, v.in(0), v.in(0).cols)}; },
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 1); },
    .reference =
        [](const RefCall& c) {
          const float factor = c.r(c.op.attrs.scale);
          for (size_t i = 0; i < c.out().data.size(); ++i) c.out().data[i] = c.r(c.in(0).data[i] * factor);
        },
};

const OpInfo kAdd = {
    .name = "add",
    .infer = infer_binary,
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 1); },
    .reference = [](const RefCall& c) { binary(c, [](float x, float z) { return x + z; }); },
};

const OpInfo kMul = {
    .name = "mul",
    .infer = infer_binary,
    .cost = [](const OpView& v, const Extents& e) { return streaming_cost(v, e, 1); },
    .reference = [](const RefCall& c) { binary(c, [](float x, float z) { return x * z; }); },
};

}  // namespace hearth::graph
