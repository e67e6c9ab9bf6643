#include "graph/program.h"

#include <fmt/format.h>

#include "graph/op_info.h"

namespace hearth::graph {

int64_t rows_of(const ValueInfo& value, const Extents& extents) {
  switch (value.rows) {
    case Rows::packed: return extents.M;
    case Rows::gathered: return extents.gathered;
    case Rows::sequences: return extents.B;
    case Rows::fixed: return value.rows_fixed;
  }
  return 0;
}

std::string to_string(const Program& program) {
  std::string text;
  const auto label = [&](ValueId id) {
    if (id == kNone) return std::string("-");
    const ValueInfo& v = program.value(id);
    return v.role == Role::weight ? v.name : fmt::format("%{}", id);
  };
  for (const Op& op : program.ops) {
    std::string in, out;
    for (const ValueId id : op.in) in += (in.empty() ? "" : ", ") + label(id);
    for (const ValueId id : op.out)
      out += (out.empty() ? "" : ", ") +
             fmt::format("{}[{}] {}", label(id), program.value(id).cols, name_of(program.value(id).dtype));
    text += fmt::format("{} = {}({})  # {}\n", out, info(op.kind).name, in, op.name);
  }
  return text;
}

}  // namespace hearth::graph
