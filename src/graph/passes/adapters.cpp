// with_adapters: linear -> linear + lora.   with_taps: more results. Both only copy and extend.
#include <algorithm>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/op_info.h"
#include "graph/passes.h"

namespace hearth::graph {

Program with_adapters(const Program& program, std::span<const AdapterSite> sites) {
  Program out = program;
  out.ops.clear();
  std::vector<int32_t> moved(program.ops.size() + 1, 0);  // old op index -> new
  std::vector<bool> used(sites.size(), false);
  const auto add_weight = [&](const std::string& name, int64_t N, int64_t K) {
    out.values.push_back({.role = Role::weight, .rows = Rows::fixed, .rows_fixed = N, .cols = K, .name = name});
    out.weights.push_back(static_cast<ValueId>(out.values.size()) - 1);
    return out.weights.back();
  };
  for (size_t i = 0; i < program.ops.size(); ++i) {
    moved[i] = static_cast<int32_t>(out.ops.size());
    Op op = program.ops[i];
    const auto site = std::find_if(sites.begin(), sites.end(), [&](const AdapterSite& s) {
      return op.kind == OpKind::linear && program.value(op.in[1]).name == s.module;
    });
    if (site == sites.end()) {
      out.ops.push_back(std::move(op));
      continue;
    }
    used[static_cast<size_t>(site - sites.begin())] = true;
    const ValueInfo& w = program.value(op.in[1]);
    const int64_t N = w.rows_fixed, K = w.cols;
    const ValueId result = op.out[0];
    out.values.push_back(program.value(result));  // the linear's own result; the branch takes the old id
    op.out[0] = static_cast<ValueId>(out.values.size()) - 1;
    Op lora{.kind = OpKind::lora,
            .in = {op.out[0], op.in[0], add_weight(site->module + ".lora_a", K, site->R),
                   add_weight(site->module + ".lora_b", site->R, N)},
            .out = {result},
            .attrs = {.scale = site->scale},
            .name = site->module + ".lora"};
    out.ops.push_back(std::move(op));
    out.ops.push_back(std::move(lora));
  }
  moved.back() = static_cast<int32_t>(out.ops.size());
  for (size_t s = 0; s < sites.size(); ++s)
    if (!used[s]) fail(ErrorKind::not_found, "adapter: the model has no linear module {}", sites[s].module);
  for (Segment& segment : out.segments) {
    segment.begin = moved[static_cast<size_t>(segment.begin)];
    segment.end = moved[static_cast<size_t>(segment.end)];
  }
  return out;
}

Program with_taps(const Program& program, std::span<const std::string> op_names) {
  Program out = program;
  for (const std::string& name : op_names) {
    const auto op = std::find_if(program.ops.begin(), program.ops.end(),
                                 [&](const Op& o) { return o.name == name && !o.out.empty(); });
    if (op == program.ops.end()) fail(ErrorKind::not_found, "tap: the program has no op named {}", name);
    out.results.push_back(op->out[0]);
  }
  return out;
}

}  // namespace hearth::graph
