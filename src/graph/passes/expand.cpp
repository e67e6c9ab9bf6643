// expand: every fused op by the plain ops that its kind stands for.
#include "graph/builder.h"
#include "graph/op_info.h"
#include "graph/passes.h"

namespace hearth::graph {

Program expand(const Program& program) {
  Program start = program;
  start.ops.clear();
  Builder b(std::move(start));
  std::vector<int32_t> moved(program.ops.size() + 1, 0);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    moved[i] = static_cast<int32_t>(b.program().ops.size());
    const Op& op = program.ops[i];
    if (const ExpandRule rule = info(op.kind).expand) rule(b, OpView{program, op});
    else b.emit(op);
  }
  moved.back() = static_cast<int32_t>(b.program().ops.size());
  Program out = b.program();
  for (Segment& segment : out.segments) {
    segment.begin = moved[static_cast<size_t>(segment.begin)];
    segment.end = moved[static_cast<size_t>(segment.end)];
  }
  return out;
}

}  // namespace hearth::graph
