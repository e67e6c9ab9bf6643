// with_adapters, with_adapter_slots: linear -> linear + lora.   with_taps: more results. All only copy and extend.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/op_info.h"
#include "graph/passes.h"

namespace hearth::graph {
namespace {

// Copies a program. Where branch_of(program so far, linear, id of the linear's own result) gives an op, that op stands
// behind the linear and makes the value that others read.
template <class BranchOf>
Program with_branches(const Program& program, const BranchOf& branch_of) {
  Program out = program;
  out.ops.clear();
  std::vector<int32_t> moved(program.ops.size() + 1, 0);  // old op index -> new
  for (size_t i = 0; i < program.ops.size(); ++i) {
    moved[i] = static_cast<int32_t>(out.ops.size());
    Op op = program.ops[i];
    const auto own = static_cast<ValueId>(out.values.size());
    std::optional<Op> branch = op.kind == OpKind::linear ? branch_of(out, op, own) : std::nullopt;
    if (branch) {
      branch->out = op.out;
      op.out[0] = own;
    }
    out.ops.push_back(std::move(op));
    if (branch) out.ops.push_back(*std::move(branch));
  }
  moved.back() = static_cast<int32_t>(out.ops.size());
  for (Segment& segment : out.segments) {
    segment.begin = moved[static_cast<size_t>(segment.begin)];
    segment.end = moved[static_cast<size_t>(segment.end)];
  }
  return out;
}

}  // namespace

Program with_adapters(const Program& program, std::span<const AdapterSite> sites) {
  std::vector<bool> used(sites.size(), false);
  Program result = with_branches(program, [&](Program& out, const Op& op, ValueId own) -> std::optional<Op> {
    const auto site = std::ranges::find(sites, program.value(op.in[1]).name, &AdapterSite::module);
    if (site == sites.end()) return std::nullopt;
    used[static_cast<size_t>(site - sites.begin())] = true;
    const ValueInfo& w = program.value(op.in[1]);
    out.values.push_back(program.value(op.out[0]));
    const auto add_weight = [&](const std::string& name, int64_t N, int64_t K) {
      out.values.push_back({.role = Role::weight, .rows = Rows::fixed, .rows_fixed = N, .cols = K, .name = name});
      out.weights.push_back(static_cast<ValueId>(out.values.size()) - 1);
      return out.weights.back();
    };
    const ValueId a = add_weight(site->module + ".lora_a", w.cols, site->R);
    const ValueId b = add_weight(site->module + ".lora_b", site->R, w.rows_fixed);
    return Op{.kind = OpKind::lora,
              .in = {own, op.in[0], a, b},
              .out = {},
              .attrs = {.scale = site->scale},
              .name = site->module + ".lora"};
  });
  for (size_t s = 0; s < sites.size(); ++s)
    if (!used[s]) fail(ErrorKind::not_found, "adapter: the model has no linear module {}", sites[s].module);
  return result;
}

Program with_adapter_slots(const Program& program) {
  return with_branches(program, [&](Program& out, const Op& op, ValueId own) -> std::optional<Op> {
    if (program.value(op.out[0]).rows != Rows::packed) return std::nullopt;
    const ValueInfo& w = program.value(op.in[1]);
    Attrs attrs;
    attrs.module = static_cast<int32_t>(out.adapter_modules.size());
    out.adapter_modules.push_back({.name = w.name, .N = w.rows_fixed, .K = w.cols});
    out.values.push_back(program.value(op.out[0]));
    return Op{.kind = OpKind::lora, .in = {own, op.in[0]}, .out = {}, .attrs = attrs, .name = w.name + ".lora"};
  });
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
