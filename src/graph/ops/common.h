// Helpers of the op files: result types and the tables' shared rules.
#pragma once
#include "graph/builder.h"
#include "graph/op_info.h"

namespace hearth::graph {

// A result like x: same rows, type A (or f32), `cols` columns.
inline ValueInfo like(const OpView& v, const ValueInfo& x, int64_t cols, bool f32 = false) {
  ValueInfo r;
  r.dtype = f32 ? DType::f32 : v.program.activation;
  r.rows = x.rows;
  r.cols = cols;
  return r;
}

inline int64_t value_bytes(const OpView& v, ValueId id, const Extents& e) {
  const ValueInfo& x = v.program.value(id);
  if (x.role == Role::weight) return 0;
  return rows_of(x, e) * x.cols * static_cast<int64_t>(size_of(x.dtype));
}

// Every operand and result read or written once, weights apart; `flops_per_value` for each result value.
inline Cost streaming_cost(const OpView& v, const Extents& e, int64_t flops_per_value) {
  Cost c;
  for (const ValueId id : v.op.in)
    if (id != kNone) {
      c.bytes += value_bytes(v, id, e);
      if (v.program.value(id).role == Role::weight) c.bytes_weights += weight_bytes(v.program.value(id));
    }
  for (const ValueId id : v.op.out) {
    c.bytes += value_bytes(v, id, e);
    c.flops += flops_per_value * rows_of(v.program.value(id), e) * v.program.value(id).cols;
  }
  return c;
}

// Gathered rows cost what they hold, not the whole table.
inline int64_t row_bytes_of(const ValueInfo& table) {
  return weight_bytes(table) / std::max<int64_t>(1, table.rows_fixed);
}

double activate(Activation f, double x);  // fp64 definition, ops/act.cpp

extern const OpInfo kEmbed, kScale, kAdd, kMul, kAct, kGatedAct, kRmsNorm, kLayerNorm, kLinear, kLora, kRopeAngles,
    kRope, kKvAppend, kAttention, kSoftcap, kSliceCols, kConcatCols, kGatherRows, kPool, kMultiLinear, kGateUpAct,
    kLinearAdd;

}  // namespace hearth::graph
