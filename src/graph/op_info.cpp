#include "graph/op_info.h"

#include "graph/ops/common.h"

namespace hearth::graph {

const OpInfo& info(OpKind kind) {
  // In the order of OpKind.
  static const OpInfo* const kTable[kOpKinds] = {
      &kEmbed,      &kScale,      &kAdd,        &kMul,         &kAct,       &kGatedAct,  &kRmsNorm, &kLayerNorm,
      &kLinear,     &kLora,       &kRopeAngles, &kRope,        &kKvAppend,  &kAttention, &kSoftcap, &kSliceCols,
      &kConcatCols, &kGatherRows, &kPool,       &kMultiLinear, &kGateUpAct, &kLinearAdd};
  return *kTable[static_cast<size_t>(kind)];
}

int64_t weight_bytes(const ValueInfo& value) {
  return value.bytes > 0 ? value.bytes : 4 * std::max<int64_t>(1, value.rows_fixed) * value.cols;
}

Cost cost(const Program& program, const Op& op, const Extents& extents) {
  return info(op.kind).cost(OpView{program, op}, extents);
}

Cost cost(const Program& program, const Extents& extents) {
  Cost sum;
  for (const Op& op : program.ops) {
    const Cost c = cost(program, op, extents);
    sum.bytes_weights += c.bytes_weights;
    sum.bytes += c.bytes;
    sum.flops += c.flops;
  }
  return sum;
}

}  // namespace hearth::graph
