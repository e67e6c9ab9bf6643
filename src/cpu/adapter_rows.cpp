#include "cpu/adapter_rows.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/steps.h"
#include "graph/lora_layout.h"

namespace hearth::cpu {
namespace {

// Of a loaded weight [N, K]; throws when it is none, or another one.
const float* dense(std::span<const std::unique_ptr<Weight>> weights, graph::WeightHandle handle, int64_t N, int64_t K,
                   const std::string& module) {
  const bool known = handle.id >= 0 && static_cast<size_t>(handle.id) < weights.size() &&
                     weights[static_cast<size_t>(handle.id)] != nullptr;
  if (!known)
    fail(ErrorKind::invalid_argument, "adapter of {}: handle {} was not given by this executor", module, handle.id);
  const Weight& w = *weights[static_cast<size_t>(handle.id)];
  if (w.N != N || w.K != K || w.dense.empty())
    fail(ErrorKind::invalid_argument, "adapter of {}: a factor is [{}, {}], the module needs a vector of [{}, {}]",
         module, w.N, w.K, N, K);
  return w.dense.data();
}

}  // namespace

void AdapterRows::reserve(const graph::Program& program, const graph::Limits& limits) {
  if (program.adapter_modules.empty()) return;
  rows_.reserve(std::max(rows_.capacity(), static_cast<size_t>(limits.rows_max)));
  groups_.reserve(std::max(groups_.capacity(), static_cast<size_t>(limits.adapter_slots)));
  factors_.reserve(
      std::max(factors_.capacity(), program.adapter_modules.size() * static_cast<size_t>(limits.adapter_slots)));
}

void AdapterRows::build(const CpuPlan& plan, const graph::Bindings& bindings,
                        std::span<const std::unique_ptr<Weight>> weights) {
  rows_.clear();
  groups_.clear();
  const auto& modules = plan.program().adapter_modules;
  const graph::BatchView& batch = bindings.batch;
  modules_ = modules.size();
  if (modules.empty() || std::ranges::all_of(batch.adapter, [](int32_t slot) { return slot < 0; })) return;
  factors_.assign(bindings.adapters.size(), Factors{});
  const auto slots = static_cast<int32_t>(bindings.adapters.size() / modules.size());
  for (int32_t slot = 0; slot < slots; ++slot) {
    const auto begin = static_cast<int64_t>(rows_.size());
    for (size_t b = 0; b < batch.adapter.size(); ++b)
      if (batch.adapter[b] == slot)
        for (int32_t m = batch.row_begin[b]; m < batch.row_begin[b + 1]; ++m) rows_.push_back(m);
    const auto end = static_cast<int64_t>(rows_.size());
    if (begin == end) continue;
    groups_.push_back({slot, begin, end});
    for (size_t i = 0; i < modules.size(); ++i) {
      const size_t at = static_cast<size_t>(slot) * modules.size() + i;
      const graph::LoraFactors& given = bindings.adapters[at];
      if (given.R == 0) continue;
      if (given.R < 0 || given.R > plan.limits().adapter_rank_max)
        fail(ErrorKind::invalid_argument, "adapter of {}: rank {}, the plan has room for {}", modules[i].name, given.R,
             plan.limits().adapter_rank_max);
      const int64_t rows_a = graph::lora_rows_a(modules[i].K, given.R),
                    rows_b = graph::lora_rows_b(given.R, modules[i].N);
      factors_[at] = {.a = dense(weights, given.a, rows_a, graph::kLoraColumnsA, modules[i].name),
                      .b = dense(weights, given.b, rows_b, graph::kLoraColumnsB, modules[i].name),
                      .R = given.R,
                      .scale = given.scale};
    }
  }
}

}  // namespace hearth::cpu
