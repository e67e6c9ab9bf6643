// fuse: plain ops -> the fused kinds that a backend asks for (ops/fused.cpp defines them). Fused ops stay inside their
// segment. Values keep their ids; an intermediate that a fused op swallows is left without an op.
#include <algorithm>
#include <array>

#include "graph/passes.h"

namespace hearth::graph {
namespace {

class Fuser {
 public:
  Fuser(const Program& program, const FuseRules& rules) : program_(program), rules_(rules) {
    uses_.assign(program.values.size(), 0);
    producer_.assign(program.values.size(), -1);
    for (size_t i = 0; i < program.ops.size(); ++i) {
      for (const ValueId id : program.ops[i].in)
        if (id != kNone) ++uses_[index(id)];
      for (const ValueId id : program.ops[i].out) producer_[index(id)] = static_cast<int32_t>(i);
    }
    for (const ValueId id : program.results) ++uses_[index(id)];
    replaced_.assign(program.ops.size(), false);
    fused_.resize(program.ops.size());
  }

  Program run() {
    segment_of_.assign(program_.ops.size(), -1);
    for (size_t s = 0; s < program_.segments.size(); ++s)
      for (int32_t i = program_.segments[s].begin; i < program_.segments[s].end; ++i)
        segment_of_[static_cast<size_t>(i)] = static_cast<int32_t>(s);
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      if (rules_.gate_up_act) gate_up(i);
      if (rules_.linear_add) linear_add(i);
    }
    if (rules_.multi_linear)
      for (size_t i = 0; i < program_.ops.size(); ++i) multi(i);
    return rebuilt();
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }

  // The linear that makes `id`, if that is its only reader, its result has the fused kinds' type and it stands in the
  // segment of op `at`; else -1.
  int32_t sole_linear(ValueId id, size_t at) const {
    if (id == kNone || uses_[index(id)] != 1) return -1;
    const int32_t p = producer_[index(id)];
    if (p < 0 || replaced_[static_cast<size_t>(p)] || segment_of_[static_cast<size_t>(p)] != segment_of_[at]) return -1;
    return plain_linear(static_cast<size_t>(p)) ? p : -1;
  }
  bool plain_linear(size_t i) const {
    const Op& op = program_.ops[i];
    return op.kind == OpKind::linear && !replaced_[i] && !fused_[i] &&
           program_.value(op.out[0]).dtype == program_.activation;
  }

  void gate_up(size_t at) {
    const Op& op = program_.ops[at];
    if (op.kind != OpKind::gated_act) return;
    const int32_t gate = sole_linear(op.in[0], at), up = sole_linear(op.in[1], at);
    if (gate < 0 || up < 0 || gate == up) return;
    const Op &g = program_.ops[static_cast<size_t>(gate)], &u = program_.ops[static_cast<size_t>(up)];
    if (g.in[0] != u.in[0]) return;
    replaced_[static_cast<size_t>(gate)] = replaced_[static_cast<size_t>(up)] = true;
    fused_[at] = std::make_unique<Op>(Op{.kind = OpKind::gate_up_act,
                                         .in = {g.in[0], g.in[1], g.in[2], u.in[1], u.in[2]},
                                         .out = op.out,
                                         .attrs = op.attrs,
                                         .name = op.name});
  }

  void linear_add(size_t at) {
    const Op& op = program_.ops[at];
    if (op.kind != OpKind::add || program_.value(op.out[0]).dtype != program_.activation) return;
    std::array<int32_t, 2> linears = {sole_linear(op.in[0], at), sole_linear(op.in[1], at)};
    const size_t side = linears[1] >= linears[0] ? 1 : 0;  // of two linears the later one
    if (linears[side] < 0) return;
    const Op& l = program_.ops[static_cast<size_t>(linears[side])];
    const ValueId z = op.in[1 - side];
    const ValueInfo &x = program_.value(l.in[0]), &other = program_.value(z);
    if (other.role == Role::weight || other.rows != x.rows || other.cols != program_.value(op.out[0]).cols) return;
    replaced_[static_cast<size_t>(linears[side])] = true;
    fused_[at] = std::make_unique<Op>(Op{.kind = OpKind::linear_add,
                                         .in = {l.in[0], l.in[1], l.in[2], z},
                                         .out = op.out,
                                         .attrs = op.attrs,
                                         .name = op.name});
  }

  // All linears of one input in a segment move to the first of them.
  void multi(size_t at) {
    if (!plain_linear(at)) return;
    const Op& first = program_.ops[at];
    Op fused{.kind = OpKind::multi_linear, .in = {first.in[0]}, .out = {}, .attrs = {}, .name = first.name};
    std::vector<size_t> parts;
    for (size_t i = at; i < program_.ops.size() && segment_of_[i] == segment_of_[at]; ++i)
      if (plain_linear(i) && program_.ops[i].in[0] == first.in[0]) {
        parts.push_back(i);
        fused.in.insert(fused.in.end(), {program_.ops[i].in[1], program_.ops[i].in[2]});
        fused.out.push_back(program_.ops[i].out[0]);
      }
    if (parts.size() < 2) return;
    for (const size_t i : parts) replaced_[i] = true;
    fused_[at] = std::make_unique<Op>(std::move(fused));
  }

  Program rebuilt() const {
    Program out = program_;
    out.ops.clear();
    std::vector<int32_t> moved(program_.ops.size() + 1, 0);
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      moved[i] = static_cast<int32_t>(out.ops.size());
      if (fused_[i]) out.ops.push_back(*fused_[i]);
      else if (!replaced_[i]) out.ops.push_back(program_.ops[i]);
    }
    moved.back() = static_cast<int32_t>(out.ops.size());
    for (Segment& segment : out.segments) {
      segment.begin = moved[static_cast<size_t>(segment.begin)];
      segment.end = moved[static_cast<size_t>(segment.end)];
    }
    return out;
  }

  const Program& program_;
  const FuseRules& rules_;
  std::vector<int32_t> uses_, producer_, segment_of_;
  std::vector<bool> replaced_;
  std::vector<std::unique_ptr<Op>> fused_;
};

}  // namespace

Program fuse(const Program& program, const FuseRules& rules) { return Fuser(program, rules).run(); }

}  // namespace hearth::graph
