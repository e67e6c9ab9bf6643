#include "decode/memory.h"

#include <unistd.h>

#include <algorithm>

#include "base/cgroup.h"
#include "base/error.h"
#include "graph/op_info.h"
#include "graph/passes.h"

namespace hearth::decode {
namespace {

// What a process has beside the model: code, libraries, stacks, the program and its plans; and its tokenizer, a piece.
constexpr int64_t kProcessBytes = 28'000'000, kPieceBytes = 220;

}  // namespace

model::ForwardOptions forward_options(const model::Model& model, const EngineOptions& options) {
  model::ForwardOptions forward;
  const bool parity = options.numerics == graph::Numerics::parity;
  forward.activation = options.activation ? *options.activation : parity ? model.spec().dtype : DType::f32;
  forward.centre_keys = !parity;  // which has the file's own arithmetic
  if (options.kv) forward.kv.assign(static_cast<size_t>(model.spec().L), *options.kv);
  else forward.kv = model.kv();
  for (const graph::KvFormat format : forward.kv)
    if ((format == graph::KvFormat::q8 || format == graph::KvFormat::q4) && model.spec().Dh % graph::kKvGroup != 0)
      fail(ErrorKind::invalid_argument, "{}: a KV cache of q8 or q4 needs heads of a multiple of {}, these have {}",
           model.spec().file, graph::kKvGroup, model.spec().Dh);
  return forward;
}

int64_t default_memory_budget() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  bytes = std::min(bytes, cgroup_memory_limit().value_or(bytes));
  return bytes / 4 * 3;
}

std::array<graph::Limits, 2> plan_limits(const EngineOptions& options, int64_t context) {
  const graph::Limits prefill{.rows_max = std::max(options.prefill_chunk, options.sequences_max),
                              .sequences_max = options.sequences_max,
                              .positions_max = context,
                              .gathered_max = options.gathered_max,
                              .numerics = options.numerics,
                              .adapter_slots = options.adapter_slots,
                              .adapter_rank_max = options.adapter_rank_max};
  graph::Limits decode = prefill;
  decode.rows_max = options.sequences_max;
  decode.gathered_max = std::min(options.gathered_max, options.sequences_max);
  return {prefill, decode};
}

std::vector<graph::LayoutHint> layout_hints(const graph::Program& program) {
  struct Use {
    bool table = false, matrix = false;
  };
  std::vector<Use> uses(program.values.size());
  for (const graph::Op& op : program.ops) {
    if (op.kind == graph::OpKind::embed) uses[static_cast<size_t>(op.in[0])].table = true;
    if (op.kind == graph::OpKind::linear) uses[static_cast<size_t>(op.in[1])].matrix = true;
  }
  std::vector<graph::LayoutHint> hints;
  for (const graph::ValueId id : program.weights) {
    const Use use = uses[static_cast<size_t>(id)];
    hints.push_back(use.table && use.matrix ? graph::LayoutHint::matmul_and_gather
                    : use.table             ? graph::LayoutHint::gather
                    : use.matrix            ? graph::LayoutHint::matmul
                                            : graph::LayoutHint::vector);
  }
  return hints;
}

namespace {

int64_t bytes_of(const PackedTensor& tensor) {
  return static_cast<int64_t>(tensor.data.size() + tensor.scales.size() + tensor.biases.size());
}

}  // namespace

int64_t streamed_bytes(const model::Model& model, const graph::Program& program) {
  const std::vector<graph::LayoutHint> hints = layout_hints(program);
  int64_t sum = 0;
  for (size_t i = 0; i < hints.size(); ++i)
    if (hints[i] != graph::LayoutHint::gather)
      sum += bytes_of(model.weights().stored(program.value(program.weights[i])));
  return sum;
}

MemoryNeed weights_need(const model::Model& model, const graph::Executor& executor, const graph::Program& program) {
  const std::vector<graph::LayoutHint> hints = layout_hints(program);
  MemoryNeed need;
  int64_t loading = 0;
  for (size_t i = 0; i < hints.size(); ++i) {
    const PackedTensor w = model.weights().stored(program.value(program.weights[i]));
    need.weights += executor.weight_need({w.format, w.N, w.K, bytes_of(w)}, hints[i]);
    loading = std::max(loading, need.weights + bytes_of(w));
  }
  need.loading = loading - need.weights;
  need.process = kProcessBytes + kPieceBytes * model.spec().V;
  return need;
}

graph::Limits embed_limits(int64_t rows, graph::Numerics numerics) {
  return {.rows_max = rows, .sequences_max = std::min<int64_t>(rows, 256), .numerics = numerics};
}

static graph::Program written(const model::Model& model, const EngineOptions& options) {
  if (options.adapter_slots < 0 || options.adapter_slots > kAdapterSlotsMax || options.adapter_rank_max < 1)
    fail(ErrorKind::invalid_argument, "{} slots for adapters of rank {}: 0 to {} slots and a rank of 1 or more fit",
         options.adapter_slots, options.adapter_rank_max, kAdapterSlotsMax);
  if (model.spec().encoder()) return model::embedding_forward(model.spec(), {});
  return model::forward(model.spec(), forward_options(model, options));
}

MemoryPlan::MemoryPlan(const model::Model& model, const graph::Executor& executor, const EngineOptions& options)
    : model_(model),
      executor_(executor),
      options_(options),
      program_(written(model, options)),
      fixed_(weights_need(model, executor, program_)) {
  fixed_.adapters = options.adapter_bytes;
  if (options.adapter_slots > 0 && !model.spec().encoder()) slotted_ = graph::with_adapter_slots(program_);
  if (!model.spec().encoder()) fixed_.logits = 4 * options.gathered_max * model.spec().V;
  for (const graph::KvGroup& group : program_.kv_groups)
    if (group.window == 0) fixed_.kv_per_position += graph::kv_page_bytes(group) / graph::kPagePositions;
}

int64_t pool_pages(const graph::KvGroup& group, int64_t context, const EngineOptions& options) {
  const int64_t one = pages_needed(group, context, options.prefill_chunk), all = options.sequences_max * one;
  if (options.pool_positions == 0 || group.window > 0) return all;
  return std::clamp((options.pool_positions + graph::kPagePositions - 1) / graph::kPagePositions, one, all);
}

int64_t MemoryPlan::kv_bytes(int64_t context) const {
  int64_t sum = 0;
  for (const graph::KvGroup& group : program_.kv_groups)
    sum += pool_pages(group, context, options_) * graph::kv_page_bytes(group);
  return sum;
}

MemoryNeed MemoryPlan::at(int64_t context) const {
  MemoryNeed need = fixed_;
  need.kv = kv_bytes(context);
  if (model_.spec().encoder()) {
    const graph::Executor::PlanExtent plan{program_, embed_limits(std::max(kEmbedRows, context), options_.numerics)};
    need.arena = executor_.working_need({&plan, 1});
  } else {
    std::vector<graph::Executor::PlanExtent> plans;
    for (const graph::Limits& limits : plan_limits(options_, context)) {
      plans.push_back({program_, limits});
      if (slotted_) plans.push_back({*slotted_, limits});
    }
    need.arena = executor_.working_need(plans);
  }
  return need;
}

int64_t MemoryPlan::largest(int64_t budget) const {
  const int64_t trained = model_.spec().context;
  const auto positions = [&](int64_t pages) { return std::min(trained, pages * graph::kPagePositions); };
  MemoryNeed need = at(trained);  // the arena grows with the context, by little: shorter ones are given as much
  if (need.total() <= budget) return trained;
  int64_t low = 0;  // in pages; `high` is not tried
  int64_t high = (trained + graph::kPagePositions - 1) / graph::kPagePositions;
  while (low + 1 < high) {
    const int64_t middle = (low + high) / 2;
    need.kv = kv_bytes(positions(middle));
    if (need.total() <= budget) low = middle;
    else high = middle;
  }
  return positions(low);
}

MemoryNeed memory_need(const model::Model& model, const graph::Executor& executor, const EngineOptions& options,
                       int64_t context) {
  return MemoryPlan(model, executor, options).at(context);
}

int64_t largest_context(const model::Model& model, const graph::Executor& executor, const EngineOptions& options,
                        int64_t budget) {
  return MemoryPlan(model, executor, options).largest(budget);
}

}  // namespace hearth::decode
