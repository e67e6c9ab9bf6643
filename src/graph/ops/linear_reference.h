// The definition of linear, shared with the fused kinds that contain it.
#pragma once
#include "graph/op_info.h"

namespace hearth::graph {

// y[m, n] = r(sum_k x[m, k] W[n, k]), then r(y + b[n]); unrounded when f32. fp64 sums.
void linear_reference(const RefCall& c, const RefValue& x, const RefValue& weight, const RefValue* bias, bool f32,
                      RefValue& y);

// Throws unless operand `weight` fits operand `x` and operand `bias` (when present) fits the weight.
void require_linear(const OpView& v, size_t x, size_t weight, size_t bias);

Cost linear_cost(const OpView& v, const Extents& e);

}  // namespace hearth::graph
