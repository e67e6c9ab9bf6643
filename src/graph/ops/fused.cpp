// Fused kinds: each stands for plain ops, in this order.
//   multi_linear  in: x, then (W_i, b_i or none) ...; out: y_i = linear(x, W_i, b_i)
//   gate_up_act   in: x, Wg, bg or none, Wu, bu or none; out: gated_act(linear(x, Wg, bg), linear(x, Wu, bu))
//   linear_add    in: x, W, b or none, z; out: add(linear(x, W, b), z)
#include "graph/ops/common.h"
#include "graph/ops/linear_reference.h"

namespace hearth::graph {

static void multi_reference(const RefCall& c) {
  for (size_t i = 0; i < c.op.out.size(); ++i)
    linear_reference(c, c.in(0), c.in(1 + 2 * i), c.has(2 + 2 * i) ? &c.in(2 + 2 * i) : nullptr,
                     c.program.value(c.op.out[i]).dtype == DType::f32, c.out(i));
}

static RefValue sized(int64_t rows, int64_t cols) {
  RefValue v;
  v.rows = rows;
  v.cols = cols;
  v.data.resize(static_cast<size_t>(rows * cols));
  return v;
}

static void gate_up_reference(const RefCall& c) {
  RefValue& y = c.out();
  RefValue gate = sized(y.rows, y.cols), up = sized(y.rows, y.cols);
  const bool f32 = c.program.activation == DType::f32;
  linear_reference(c, c.in(0), c.in(1), c.has(2) ? &c.in(2) : nullptr, f32, gate);
  linear_reference(c, c.in(0), c.in(3), c.has(4) ? &c.in(4) : nullptr, f32, up);
  for (size_t i = 0; i < y.data.size(); ++i)
    y.data[i] = c.r(c.r(static_cast<float>(activate(c.op.attrs.act, gate.data[i]))) * up.data[i]);
}

static void linear_add_reference(const RefCall& c) {
  RefValue& y = c.out();
  RefValue t = sized(y.rows, y.cols);
  linear_reference(c, c.in(0), c.in(1), c.has(2) ? &c.in(2) : nullptr, c.program.activation == DType::f32, t);
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] = c.r(t.data[i] + c.in(3).data[i]);
}

// Emits a plain op whose results are the given ones, or new values when none are given.
static Ids plain(Builder& b, OpKind kind, Ids in, Ids out, const Attrs& attrs, const std::string& name) {
  return b.emit(Op{.kind = kind, .in = std::move(in), .out = std::move(out), .attrs = attrs, .name = name});
}

const OpInfo kMultiLinear = {
    .name = "multi_linear",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      std::vector<ValueInfo> results;
      for (size_t i = 1; i + 1 < v.ins(); i += 2) {
        require_linear(v, 0, i, i + 1);
        results.push_back(like(v, v.in(0), v.in(i).rows_fixed));
      }
      return results;
    },
    .cost = linear_cost,
    .reference = multi_reference,
    .expand =
        [](Builder& b, const OpView& v) {
          for (size_t i = 0; i < v.op.out.size(); ++i)
            plain(b, OpKind::linear, {v.op.in[0], v.op.in[1 + 2 * i], v.op.in[2 + 2 * i]}, {v.op.out[i]}, {},
                  v.in(1 + 2 * i).name);
        },
};

const OpInfo kGateUpAct = {
    .name = "gate_up_act",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require_linear(v, 0, 1, 2);
      require_linear(v, 0, 3, 4);
      require(v.in(1).rows_fixed == v.in(3).rows_fixed, v, "gate has {} rows, up has {}", v.in(1).rows_fixed,
              v.in(3).rows_fixed);
      return {like(v, v.in(0), v.in(1).rows_fixed)};
    },
    .cost = linear_cost,
    .reference = gate_up_reference,
    .expand =
        [](Builder& b, const OpView& v) {
          const ValueId gate = plain(b, OpKind::linear, {v.op.in[0], v.op.in[1], v.op.in[2]}, {}, {}, v.in(1).name)[0];
          const ValueId up = plain(b, OpKind::linear, {v.op.in[0], v.op.in[3], v.op.in[4]}, {}, {}, v.in(3).name)[0];
          plain(b, OpKind::gated_act, {gate, up}, v.op.out, v.attrs(), v.op.name);
        },
};

const OpInfo kLinearAdd = {
    .name = "linear_add",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require_linear(v, 0, 1, 2);
      require(v.in(3).cols == v.in(1).rows_fixed && v.in(3).rows == v.in(0).rows, v,
              "the weight has {} rows, the sum has {} columns", v.in(1).rows_fixed, v.in(3).cols);
      return {like(v, v.in(0), v.in(1).rows_fixed)};
    },
    .cost = linear_cost,
    .reference = linear_add_reference,
    .expand =
        [](Builder& b, const OpView& v) {
          const ValueId y = plain(b, OpKind::linear, {v.op.in[0], v.op.in[1], v.op.in[2]}, {}, {}, v.in(1).name)[0];
          plain(b, OpKind::add, {y, v.op.in[3]}, v.op.out, {}, v.op.name);
        },
};

}  // namespace hearth::graph
