// A Program compiled for the CPU: a flat list of steps that every member of the team walks, with barriers only where
// data crosses members. Two lists: `few` for runs of up to kFewRows rows, where all but the matrix products and
// attention is done by every member for itself (`own` memory, no barrier), and `many`, where rows are shared out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/attention_schedule.h"
#include "cpu/linear.h"
#include "graph/executor.h"
#include "graph/passes.h"

namespace hearth::cpu {

inline constexpr int64_t kFewRows = 2;
inline constexpr int kActSlots = 2;  // rows of activations of so many values are kept

enum class Place : uint8_t {
  none,
  shared,  // the arena
  own,     // each member's arena
  result,  // Bindings::results
  weight,  // a vector among the weights
};

// Where a value (or some of its columns) lies: rows of `cols` floats, `stride` floats apart.
struct Ref {
  Place place = Place::none;
  int32_t index = -1;  // results, weights
  int64_t offset = 0;  // floats
  int64_t stride = 0, cols = 0;
  graph::Rows rows = graph::Rows::packed;
};

// How the members share a step.
enum class Share : uint8_t {
  own,     // every member does all of it, in its own memory
  rows,    // contiguous rows
  blocks,  // rows and columns as linear() shares out a product of share_N outputs
  any,     // otherwise; nothing is known about who touches what
};

enum class StepKind : uint8_t {
  embed,
  scale,
  add,
  mul,
  act,
  gated_act,
  rms_norm,
  layer_norm,
  quantize,
  linear,
  bias_round,  // y = r(y), then r(y + bias)
  lora,
  lora_slots,  // in place
  rope_angles,
  rope,
  kv_append,
  attention,
  softcap,
  copy,
  gather_rows,
  pool,
};

struct Step {
  StepKind kind;
  int32_t op = -1;       // index into the program's ops
  bool barrier = false;  // before the step
  Share share = Share::own;
  int64_t share_N = 0;
  graph::Rows rows = graph::Rows::packed;  // that the step goes over
  Ref x = {}, z = {}, y = {};              // z: second operand (up, summand, angles, lora's x, v)
  Ref k = {};                              // attention without a cache: k here, v in z
  int32_t weight = -1, bias = -1;          // indices into Program::weights
  int32_t slot = 0;                        // quantize, linear: which rows of activations
  bool accumulate = false;
  int32_t schedule = -1;  // attention
  DType r = DType::f32;   // what r() rounds the result to
  graph::Attrs attrs = {};
  std::vector<int32_t> readers = {};  // quantize: weights that read the rows
};

struct StepList {
  std::vector<Step> steps;
  int64_t shared_floats = 0, own_floats = 0;
  int64_t rows_max = 0;
};

// What the readers of a weight need of it.
struct WeightUse {
  bool product = false, rows = false, dense = false;
};

class CpuPlan final : public graph::Plan {
 public:
  // Throws Error{invalid_argument} for limits that no run could use.
  CpuPlan(const graph::Program& program, const graph::Limits& limits, int members);

  const graph::Program& program() const override { return program_; }
  int64_t arena_bytes() const override;

  const graph::Limits& limits() const { return limits_; }
  const StepList& list(int64_t M, int64_t gathered, int64_t B) const {
    return M <= kFewRows && gathered <= kFewRows && B <= kFewRows ? few_ : many_;
  }
  const StepList& few() const { return few_; }
  const StepList& many() const { return many_; }
  // Of integer formats. In fast mode the head keeps 16-bit activations: its few rows are bound by the weights' bytes,
  // and its rounding goes straight into the logits.
  Core core(graph::Rows rows = graph::Rows::packed) const {
    return core_ == Core::s8 && rows == graph::Rows::gathered ? Core::s16 : core_;
  }
  int64_t K_max() const { return K_max_; }
  int64_t temp_floats() const { return temp_floats_; }      // a member's scratch for lora and constants
  int64_t lora_stride() const { return lora_stride_; }      // of a row of lora by slot's x A; 0: the program has none
  int64_t vocabulary() const { return vocabulary_; }        // rows of the smallest embedding table; 0: none
  int64_t position_rows() const { return position_rows_; }  // positions that learned tables hold; 0: there is none
  WeightUse weight_use(size_t weight) const { return uses_[weight]; }
  std::vector<AttentionSchedule>& schedules() { return schedules_; }
  const std::vector<AttentionSchedule>& schedules() const { return schedules_; }

 private:
  friend class Lowering;
  graph::Program program_;
  graph::Limits limits_;
  int members_;
  Core core_ = Core::s16;
  int64_t K_max_ = 0, temp_floats_ = 0, lora_stride_ = 0, vocabulary_ = 0, position_rows_ = 0;
  std::vector<WeightUse> uses_;
  std::vector<AttentionSchedule> schedules_;
  StepList few_, many_;
};

std::string to_string(const CpuPlan& plan, const StepList& list);  // one line a step, barriers marked; for people

// Decides barriers while a list is written. A step needs one before it when its accesses meet those of a step since
// the last barrier, one of them a write, unless each member only meets its own.
class BarrierPlanner {
 public:
  explicit BarrierPlanner(const graph::Limits& limits) : limits_(limits) {}
  void add(Step& step);  // sets step.barrier
  bool would_wait(const Step& step) const;

 private:
  // Memory that members see of each other; ranges in floats, activations and KV layers as wholes.
  enum class Area : uint8_t { arena, result, activations, kv, partials };
  struct Access {
    Area area;
    int32_t index;  // result, slot, KV layer
    int64_t begin, end;
    bool write;
    Share share;
    int64_t share_N, offset, stride;
    graph::Rows rows;
  };
  static bool meet(const Access& a, const Access& b);
  std::vector<Access> accesses_of(const Step& step) const;

  graph::Limits limits_;
  std::vector<Access> open_;  // since the last barrier
};

}  // namespace hearth::cpu
