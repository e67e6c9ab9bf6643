// Sizes of a model in memory before it is loaded (DESIGN 8).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "decode/engine.h"
#include "model/forward.h"

namespace hearth::decode {

// What the forward is written with. Throws Error{invalid_argument} for a quantized cache whose groups do not fit Dh.
model::ForwardOptions forward_options(const model::Model& model, const EngineOptions& options);

// Of the two plans, prefill and decode.
std::array<graph::Limits, 2> plan_limits(const EngineOptions& options, int64_t context);

// Of an embedder: steps of so many rows, nothing cached. kEmbedRows: those of a step of short texts.
inline constexpr int64_t kEmbedRows = 1024;
graph::Limits embed_limits(int64_t rows, graph::Numerics numerics);

// Weights, what loading takes beside them, and the process; the rest is 0. Loads nothing.
MemoryNeed weights_need(const model::Model& model, const graph::Executor& executor, const graph::Program& program);

// The same figures for several contexts: the forward is written once.
class MemoryPlan {
 public:
  // Looks at every weight's extents, and loads none. The three must outlive the plan. An encoder is planned for as an
  // embedder runs it, its context being the longest text.
  MemoryPlan(const model::Model& model, const graph::Executor& executor, const EngineOptions& options);

  const graph::Program& program() const { return program_; }  // the base model's, without slots for adapters
  MemoryNeed at(int64_t context) const;
  // The largest context, up to the trained one, that fits the budget; 0 when not even one page does.
  int64_t largest(int64_t budget) const;

 private:
  int64_t kv_bytes(int64_t context) const;

  const model::Model& model_;
  const graph::Executor& executor_;
  const EngineOptions& options_;
  graph::Program program_;
  std::optional<graph::Program> slotted_;  // of steps with adapters
  MemoryNeed fixed_;                       // without arena and KV
};

// Pages of a group's pool: at least one whole context, at most as many as sequences_max of them need.
int64_t pool_pages(const graph::KvGroup& group, int64_t context, const EngineOptions& options);

// How each of Program::weights is laid out: by the ops that read it.
std::vector<graph::LayoutHint> layout_hints(const graph::Program& program);

// Bytes of weights, as stored, that one decoded token reads: all but a table of which only rows are taken.
int64_t streamed_bytes(const model::Model& model, const graph::Program& program);

}  // namespace hearth::decode
