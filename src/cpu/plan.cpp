#include "cpu/plan.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/lora_layout.h"
#include "graph/op_info.h"

namespace hearth::cpu {

using graph::Attrs;
using graph::kNone;
using graph::Op;
using graph::OpKind;
using graph::Program;
using graph::Role;
using graph::ValueId;
using graph::ValueInfo;

// Writes one step list. Each op becomes one or a few steps; every value gets a place on the way.
class Lowering {
 public:
  Lowering(CpuPlan& plan, StepList& list, bool few)
      : plan_(plan), program_(plan.program_), list_(list), few_(few), limits_(plan.limits_), barriers_(plan.limits_) {
    if (few) {
      limits_.rows_max = std::min(limits_.rows_max, kFewRows);
      limits_.sequences_max = std::min(limits_.sequences_max, kFewRows);
      limits_.gathered_max = std::min(limits_.gathered_max, kFewRows);
    }
    barriers_ = BarrierPlanner(limits_);
    memory_ = graph::plan_memory(
        program_, limits_,
        {.results = false, .linear_add_in_place = true, .adapted_in_place = !program_.adapter_modules.empty()});
    list_.rows_max = std::max({limits_.rows_max, limits_.sequences_max, limits_.gathered_max});
    refs_.resize(program_.values.size());
    weight_.assign(program_.values.size(), -1);
    for (size_t i = 0; i < program_.weights.size(); ++i) {
      const ValueId id = program_.weights[i];
      const int64_t cols = program_.value(id).cols;
      weight_[index(id)] = static_cast<int32_t>(i);
      refs_[index(id)] = {Place::weight, static_cast<int32_t>(i), 0, 0, cols, graph::Rows::fixed};
    }
    result_.assign(program_.values.size(), -1);
    for (size_t i = program_.results.size(); i-- > 0;) result_[index(program_.results[i])] = static_cast<int32_t>(i);
    fresh_.assign(program_.values.size(), 0);
  }

  void run() {
    int64_t spare = 0;
    for (const Op& op : program_.ops)
      if (op.kind == OpKind::gate_up_act) spare = std::max(spare, rows_of(op.out[0]) * program_.value(op.out[0]).cols);
    spare_ = memory_.bytes / 4;
    list_.shared_floats = spare_ + (spare + 15) / 16 * 16;
    list_.own_floats = few_ ? memory_.bytes / 4 : 0;
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      at_ = static_cast<int32_t>(i);
      lower(program_.ops[i]);
    }
    copy_results();
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  const ValueInfo& value(ValueId id) const { return program_.value(id); }
  const Ref& ref(ValueId id) const { return refs_[index(id)]; }
  int32_t weight(ValueId id) const { return id == kNone ? -1 : weight_[index(id)]; }
  int32_t used(ValueId id, bool WeightUse::* how) {
    const int32_t w = weight(id);
    if (w >= 0) plan_.uses_[static_cast<size_t>(w)].*how = true;
    return w;
  }
  int32_t product(ValueId id) { return used(id, &WeightUse::product); }
  int32_t dense(ValueId id) { return used(id, &WeightUse::dense); }
  int64_t rows_of(ValueId id) const { return graph::rows_max(value(id).rows, limits_); }
  DType rounding(ValueId id) const { return value(id).dtype; }

  Step step(StepKind kind, const Op& op) const {
    Step s{.kind = kind, .op = at_};
    s.attrs = op.attrs;
    s.r = program_.activation;
    if (!op.out.empty()) s.rows = value(op.out[0]).rows;
    return s;
  }

  void emit(Step s) {
    barriers_.add(s);
    if (s.barrier) std::fill(fresh_.begin(), fresh_.end(), 0);
    list_.steps.push_back(std::move(s));
  }

  // Gives a result its memory. Own memory only in the `few` list, and never for results of the program.
  const Ref& place(ValueId id, bool own) {
    const ValueInfo& v = value(id);
    Ref& r = refs_[index(id)];
    r = {Place::shared, 0, memory_.offset[index(id)] / 4, v.cols, v.cols, v.rows};
    if (result_[index(id)] >= 0) r = {Place::result, result_[index(id)], 0, v.cols, v.cols, v.rows};
    else if (own) r.place = Place::own;
    return r;
  }

  // A step whose y depends on its x and z element by element: along with the linear that made an operand where that
  // costs no barrier, else every member for itself (few) or by rows.
  void emit_elementwise(Step s, const Op& op) {
    const int64_t cols = value(op.out[0]).cols;
    const bool follows = std::ranges::any_of(
        op.in, [&](ValueId id) { return id != kNone && fresh_[index(id)] == cols && value(id).rows == s.rows; });
    if (follows) {
      Step tried = s;
      tried.share = Share::blocks;
      tried.share_N = cols;
      tried.y = place(op.out[0], false);
      if (!barriers_.would_wait(tried)) {
        emit(std::move(tried));
        fresh_[index(op.out[0])] = cols;
        return;
      }
    }
    emit_rows(std::move(s), op.out[0]);
  }

  void emit_rows(Step s, ValueId out) {
    s.y = place(out, few_);
    s.share = s.y.place == Place::own ? Share::own : Share::rows;
    emit(std::move(s));
  }

  // Rows of activations of x for integer cores; made once while they last.
  int32_t activations(ValueId x, int32_t w) {
    if (plan_.core_ == Core::f32) return -1;
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].x == x) {
        list_.steps[slots_[i].step].readers.push_back(w);
        return static_cast<int32_t>(i);
      }
    const size_t slot = next_slot_++ % slots_.size();
    Step s{.kind = StepKind::quantize, .op = at_};
    s.rows = value(x).rows;
    s.x = ref(x);
    s.slot = static_cast<int32_t>(slot);
    s.readers = {w};
    s.share = few_ ? Share::own : Share::rows;
    emit(std::move(s));
    slots_[slot] = {x, list_.steps.size() - 1};
    return static_cast<int32_t>(slot);
  }

  // y (+)= x W^T + bias. With r narrower than f32: r(sum), then r(sum + bias).
  void linear(ValueId x, ValueId w, ValueId bias, const Ref& y, DType r, bool accumulate) {
    plan_.K_max_ = std::max(plan_.K_max_, value(x).cols);
    Step s{.kind = StepKind::linear, .op = at_};
    s.rows = value(x).rows;
    s.slot = activations(x, weight(w));
    s.x = ref(x);
    s.y = y;
    s.weight = product(w);
    s.share = Share::blocks;
    s.share_N = y.cols;
    s.accumulate = accumulate;
    if (r == DType::f32) s.bias = dense(bias);
    emit(std::move(s));
    if (r == DType::f32) return;
    Step b{.kind = StepKind::bias_round, .op = at_};
    b.rows = value(x).rows;
    b.x = b.y = y;
    b.bias = dense(bias);
    b.share = Share::blocks;
    b.share_N = y.cols;
    b.r = r;
    emit(std::move(b));
  }

  void linear_op(ValueId x, ValueId w, ValueId bias, ValueId out) {
    linear(x, w, bias, place(out, false), rounding(out), false);
    fresh_[index(out)] = value(out).cols;
  }

  void gate_up(const Op& op) {
    const ValueId out = op.out[0];
    const Ref gate = place(out, false);
    const int64_t cols = value(out).cols;
    const Ref up{Place::shared, 0, spare_, cols, cols, value(out).rows};
    linear(op.in[0], op.in[1], op.in[2], gate, rounding(out), false);
    linear(op.in[0], op.in[3], op.in[4], up, rounding(out), false);
    Step s = step(StepKind::gated_act, op);
    s.x = s.y = gate;
    s.z = up;
    s.share = Share::blocks;
    s.share_N = cols;
    emit(std::move(s));
    fresh_[index(out)] = cols;
  }

  // The result's memory, where an operand that it is made upon stands already or is copied to.
  Ref place_upon(ValueId operand, const Op& op) {
    const Ref y = place(op.out[0], false), from = ref(operand);
    if (from.place == y.place && from.index == y.index && from.offset == y.offset && from.stride == y.stride) return y;
    Step s = step(StepKind::copy, op);
    s.x = from;
    s.y = y;
    s.share = Share::blocks;
    s.share_N = y.cols;
    emit(std::move(s));
    return y;
  }

  void linear_add(const Op& op) {
    const ValueId out = op.out[0];
    const Ref y = place_upon(op.in[3], op);
    linear(op.in[0], op.in[1], op.in[2], y, DType::f32, true);
    fresh_[index(out)] = y.cols;
  }

  void attention(const Op& op) {
    Step s = step(StepKind::attention, op);
    s.x = ref(op.in[0]);
    AttentionShape shape{.H = op.attrs.H, .Hkv = op.attrs.Hkv, .Dh = op.attrs.Dh, .window = op.attrs.width};
    shape.cached = op.attrs.layer >= 0;
    if (shape.cached) {
      const graph::KvLayer& layer = program_.kv_layers[static_cast<size_t>(op.attrs.layer)];
      shape.window = program_.kv_groups[static_cast<size_t>(layer.group)].window;
    } else {
      s.k = ref(op.in[1]);
      s.z = ref(op.in[2]);
    }
    auto& schedules = plan_.schedules_;
    const auto same = std::ranges::find(schedules, shape, &AttentionSchedule::shape);
    s.schedule = static_cast<int32_t>(same - schedules.begin());
    if (same == schedules.end())
      schedules.emplace_back(shape, plan_.limits_.rows_max, plan_.limits_.sequences_max, plan_.limits_.positions_max,
                             plan_.members_);
    s.y = place(op.out[0], false);
    s.share = Share::any;
    emit(std::move(s));
  }

  void append(const Op& op) {
    Step s = step(StepKind::kv_append, op);
    s.rows = value(op.in[0]).rows;
    s.x = ref(op.in[0]);
    s.z = ref(op.in[1]);
    s.share = Share::any;
    emit(std::move(s));
  }

  void lora_slots(const Op& op) {
    plan_.lora_stride_ = graph::lora_blocks_a(plan_.limits_.adapter_rank_max) * graph::kLoraColumnsA;
    Step s = step(StepKind::lora_slots, op);
    s.x = s.y = place_upon(op.in[0], op);
    s.z = ref(op.in[1]);
    s.share = Share::blocks;
    s.share_N = s.y.cols;
    emit(std::move(s));
    fresh_[index(op.out[0])] = value(op.out[0]).cols;
  }

  void lora(const Op& op) {
    if (op.attrs.module >= 0) return lora_slots(op);
    Step s = step(StepKind::lora, op);
    s.x = ref(op.in[0]);
    s.z = ref(op.in[1]);
    s.weight = dense(op.in[2]);
    s.bias = dense(op.in[3]);
    plan_.temp_floats_ = std::max(plan_.temp_floats_, value(op.in[2]).cols + value(op.out[0]).cols + 32);
    if (!few_) return emit_rows(std::move(s), op.out[0]);
    s.y = place(op.out[0], false);
    s.share = Share::blocks;
    s.share_N = s.y.cols;
    emit(std::move(s));
    fresh_[index(op.out[0])] = s.y.cols;
  }

  void concat(const Op& op) {
    Ref y = place(op.out[0], few_);
    for (const ValueId in : op.in) {
      Step s = step(StepKind::copy, op);
      s.x = ref(in);
      s.y = y;
      s.y.cols = s.x.cols;
      s.share = y.place == Place::own ? Share::own : Share::rows;
      emit(std::move(s));
      y.offset += ref(in).cols;
    }
  }

  void unary(StepKind kind, const Op& op, bool elementwise) {
    Step s = step(kind, op);
    if (!op.in.empty()) s.x = ref(op.in[0]);
    if (elementwise) emit_elementwise(std::move(s), op);
    else emit_rows(std::move(s), op.out[0]);
  }

  void binary(StepKind kind, const Op& op) {
    Step s = step(kind, op);
    s.x = ref(op.in[0]);
    s.z = ref(op.in[1]);
    dense(op.in[1]);
    if (s.z.cols != s.x.cols) plan_.temp_floats_ = std::max(plan_.temp_floats_, s.x.cols);
    emit_elementwise(std::move(s), op);
  }

  void norm(StepKind kind, const Op& op) {
    Step s = step(kind, op);
    s.x = ref(op.in[0]);
    s.weight = dense(op.in[1]);
    if (op.in.size() > 2) s.bias = dense(op.in[2]);
    if (s.attrs.width == 0) s.attrs.width = s.x.cols;
    emit_rows(std::move(s), op.out[0]);
  }

  void lower(const Op& op) {
    switch (op.kind) {
      case OpKind::embed: {
        Step s = step(StepKind::embed, op);
        s.weight = used(op.in[0], &WeightUse::rows);
        const int64_t rows = value(op.in[0]).rows_fixed - op.attrs.begin;
        const auto at_most = [rows](int64_t& bound) { bound = bound > 0 ? std::min(bound, rows) : rows; };
        if (op.attrs.lookup == graph::Lookup::ids) at_most(plan_.vocabulary_);
        if (op.attrs.lookup == graph::Lookup::positions) at_most(plan_.position_rows_);
        return emit_rows(std::move(s), op.out[0]);
      }
      case OpKind::scale: {
        Step s = step(StepKind::scale, op);
        s.x = ref(op.in[0]);
        s.attrs.scale = round_to(program_.activation, op.attrs.scale);
        return emit_elementwise(std::move(s), op);
      }
      case OpKind::softcap: {
        Step s = step(StepKind::softcap, op);
        s.x = ref(op.in[0]);
        s.r = rounding(op.out[0]);
        return emit_elementwise(std::move(s), op);
      }
      case OpKind::add: return binary(StepKind::add, op);
      case OpKind::mul: return binary(StepKind::mul, op);
      case OpKind::act: return unary(StepKind::act, op, true);
      case OpKind::gated_act: return binary(StepKind::gated_act, op);
      case OpKind::rms_norm: return norm(StepKind::rms_norm, op);
      case OpKind::layer_norm: return norm(StepKind::layer_norm, op);
      case OpKind::linear: return linear_op(op.in[0], op.in[1], op.in[2], op.out[0]);
      case OpKind::lora: return lora(op);
      case OpKind::rope_angles: return unary(StepKind::rope_angles, op, false);
      case OpKind::rope: {
        Step s = step(StepKind::rope, op);
        s.x = ref(op.in[0]);
        s.z = ref(op.in[1]);
        return emit_rows(std::move(s), op.out[0]);
      }
      case OpKind::kv_append: return append(op);
      case OpKind::attention: return attention(op);
      case OpKind::slice_cols: {
        Ref r = ref(op.in[0]);
        r.offset += op.attrs.begin;
        r.cols = op.attrs.end - op.attrs.begin;
        refs_[index(op.out[0])] = r;
        return;
      }
      case OpKind::concat_cols: return concat(op);
      case OpKind::gather_rows: return unary(StepKind::gather_rows, op, false);
      case OpKind::pool: return unary(StepKind::pool, op, false);
      case OpKind::multi_linear:
        for (size_t i = 0; i < op.out.size(); ++i) linear_op(op.in[0], op.in[1 + 2 * i], op.in[2 + 2 * i], op.out[i]);
        return;
      case OpKind::gate_up_act: return gate_up(op);
      case OpKind::linear_add: return linear_add(op);
    }
  }

  // Results that an op did not write in place: slices, weights, values listed twice.
  void copy_results() {
    for (size_t i = 0; i < program_.results.size(); ++i) {
      const ValueId id = program_.results[i];
      const Ref& from = ref(id);
      if (from.place == Place::result && from.index == static_cast<int32_t>(i) && from.stride == value(id).cols)
        continue;
      Step s{.kind = StepKind::copy, .op = at_};
      s.rows = value(id).rows;
      s.x = from;
      s.y = {Place::result, static_cast<int32_t>(i), 0, value(id).cols, value(id).cols, value(id).rows};
      s.share = Share::rows;
      emit(std::move(s));
    }
  }

  struct Slot {
    ValueId x = kNone;
    size_t step = 0;
  };

  CpuPlan& plan_;
  const Program& program_;
  StepList& list_;
  bool few_;
  graph::Limits limits_;
  BarrierPlanner barriers_;
  graph::MemoryMap memory_;
  std::vector<Ref> refs_;
  std::vector<int32_t> weight_, result_;
  std::vector<int64_t> fresh_;  // N of the linear-shaped share that wrote a value since the last barrier; 0: none
  std::array<Slot, kActSlots> slots_;
  size_t next_slot_ = 0;
  int64_t spare_ = 0;
  int32_t at_ = 0;
};

static graph::FuseRules rules_for(const Program& program) {
  return {.multi_linear = true, .gate_up_act = true, .linear_add = program.activation == DType::f32};
}

CpuPlan::CpuPlan(const Program& program, const graph::Limits& limits, int members)
    : program_(graph::fuse(program, rules_for(program))), limits_(limits), members_(members) {
  if (limits.rows_max < 1 || limits.sequences_max < 1 || limits.gathered_max < 0 || limits.positions_max < 0)
    fail(ErrorKind::invalid_argument, "limits of {} rows, {} sequences, {} gathered rows, {} positions: no run fits",
         limits.rows_max, limits.sequences_max, limits.gathered_max, limits.positions_max);
  limits_.gathered_max = std::max<int64_t>(1, limits.gathered_max);
  core_ = limits.numerics == graph::Numerics::parity ? Core::f32
          : limits.numerics == graph::Numerics::fast ? Core::s8
                                                     : Core::s16;
  uses_.resize(program_.weights.size());
  Lowering(*this, few_, true).run();
  Lowering(*this, many_, false).run();
}

int64_t CpuPlan::arena_bytes() const {
  return 4 * (std::max(few_.shared_floats, many_.shared_floats) + members_ * few_.own_floats);
}

std::string to_string(const CpuPlan& plan, const StepList& list) {
  static constexpr const char* kKinds[] = {
      "embed",      "scale",     "add",       "mul",        "act",  "gated_act",   "rms_norm",
      "layer_norm", "quantize",  "linear",    "bias_round", "lora", "lora_slots",  "rope_angles",
      "rope",       "kv_append", "attention", "softcap",    "copy", "gather_rows", "pool"};
  static constexpr const char* kShares[] = {"own", "rows", "blocks", "any"};
  std::string text;
  for (const Step& s : list.steps)
    text += fmt::format("{}{} {} # {}\n", s.barrier ? "| " : "  ", kKinds[static_cast<size_t>(s.kind)],
                        kShares[static_cast<size_t>(s.share)], plan.program().ops[static_cast<size_t>(s.op)].name);
  return text;
}

}  // namespace hearth::cpu
