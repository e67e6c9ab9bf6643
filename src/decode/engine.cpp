#include "decode/engine.h"

#include <algorithm>

#include "base/error.h"
#include "decode/memory.h"
#include "graph/op_info.h"
#include "model/forward.h"

namespace hearth::decode {

using graph::kPagePositions;

Engine::Engine(std::shared_ptr<model::Model> model, std::unique_ptr<graph::Executor> executor, EngineOptions options,
               const std::function<void(int64_t, int64_t)>& progress)
    : model_(std::move(model)), executor_(std::move(executor)), options_(options) {
  const graph::DeviceInfo device = executor_->info();
  if (std::find(device.numerics.begin(), device.numerics.end(), options_.numerics) == device.numerics.end())
    fail(ErrorKind::invalid_argument, "numerics {} is not offered by the executor {}", name_of(options_.numerics),
         device.name);
  graph::Program program = model::forward(spec(), forward_options(*model_, options_));
  const int64_t budget = options_.memory_budget > 0 ? options_.memory_budget : default_memory_budget();
  const int64_t fits = largest_context(*model_, options_, budget);
  context_ = options_.context > 0 ? options_.context : fits;
  if (context_ > spec().context)
    fail(ErrorKind::out_of_memory, "{}: a context of {} positions was asked for, the model was trained for {}",
         spec().file, context_, spec().context);
  if (fits <= 0 || context_ > fits)
    fail(ErrorKind::out_of_memory,
         "{}: a context of {} positions needs {} MB, the memory budget is {} MB ({} positions fit); lower --context or "
         "raise --memory-budget",
         spec().file, std::max(context_, kPagePositions),
         memory_need(*model_, options_, std::max(context_, kPagePositions)).total() / 1'000'000, budget / 1'000'000,
         fits);

  load_weights(program, progress);
  graph::Limits limits{.rows_max = std::max(options_.prefill_chunk, options_.sequences_max),
                       .sequences_max = options_.sequences_max,
                       .positions_max = context_,
                       .gathered_max = options_.gathered_max,
                       .numerics = options_.numerics};
  prefill_ = executor_->prepare(program, limits);
  limits.rows_max = options_.sequences_max;
  limits.gathered_max = std::min(options_.gathered_max, options_.sequences_max);
  decode_ = executor_->prepare(program, limits);

  std::vector<int64_t> pages;
  for (const graph::KvGroup& group : program.kv_groups)
    pages.push_back(options_.sequences_max * pages_needed(group, context_, options_.prefill_chunk));
  kv_ = executor_->make_kv(program, pages);
  cache_ = std::make_unique<KvCache>(program.kv_groups, *kv_, options_.sequences_max);
  logits_.resize(static_cast<size_t>(options_.gathered_max * spec().V));
  page_rows_.resize(program.kv_groups.size());
  tables_.resize(program.kv_groups.size());
}

void Engine::load_weights(graph::Program& program, const std::function<void(int64_t, int64_t)>& progress) {
  const graph::ValueId table = program.ops.front().in.front();  // embed comes first
  int64_t total = 0, done = 0;
  for (const graph::ValueId id : program.weights) total += 4 * program.value(id).rows_fixed * program.value(id).cols;
  for (const graph::ValueId id : program.weights) {
    graph::ValueInfo& value = program.values[static_cast<size_t>(id)];
    const PackedTensor tensor = model_->weights().get(value);
    value.bytes = static_cast<int64_t>(tensor.data.size() + tensor.scales.size() + tensor.biases.size());
    const bool is_table = id == table;
    const graph::LayoutHint hint = is_table && !spec().tied ? graph::LayoutHint::gather
                                   : is_table               ? graph::LayoutHint::matmul_and_gather
                                   : value.rows_fixed == 1  ? graph::LayoutHint::vector
                                                            : graph::LayoutHint::matmul;
    weights_.push_back(executor_->load(tensor, hint, value.name));
    if (hint != graph::LayoutHint::gather) model_->weights().release(tensor);
    done += 4 * value.rows_fixed * value.cols;
    if (progress) progress(done, total);
  }
}

void Engine::check(std::span<const StepInput> inputs) const {
  int64_t rows = 0, outputs = 0;
  for (const StepInput& in : inputs) {
    rows += static_cast<int64_t>(in.ids.size());
    outputs += in.outputs;
    HEARTH_CHECK(!in.ids.empty() && in.outputs <= static_cast<int64_t>(in.ids.size()), "{} outputs of {} ids",
                 in.outputs, in.ids.size());
    HEARTH_CHECK(cache_->reusable_length(*in.sequence, in.sequence->length()) == in.sequence->length(),
                 "a sequence of {} positions lacks pages of its window", in.sequence->length());
    for (const int32_t id : in.ids)
      if (id < 0 || id >= spec().V)
        fail(ErrorKind::invalid_argument, "token id {} is outside the vocabulary of {}", id, spec().V);
    const int64_t length = in.sequence->length() + static_cast<int64_t>(in.ids.size());
    if (length > context_)
      fail(ErrorKind::out_of_memory, "{} positions do not fit the context of {}", length, context_);
  }
  const int64_t rows_max = std::max(options_.prefill_chunk, options_.sequences_max);
  HEARTH_CHECK(rows <= rows_max && outputs <= options_.gathered_max &&
                   static_cast<int64_t>(inputs.size()) <= options_.sequences_max,
               "a step of {} sequences, {} rows, {} outputs", inputs.size(), rows, outputs);
}

std::span<float> Engine::step(std::span<const StepInput> inputs) {
  check(inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!cache_->reserve(*inputs[i].sequence, static_cast<int64_t>(inputs[i].ids.size()))) {
      for (size_t j = 0; j < i; ++j) cache_->truncate(*inputs[j].sequence, inputs[j].sequence->length());
      fail(ErrorKind::out_of_memory, "the KV cache has no free page for {} more positions", inputs[i].ids.size());
    }

  ids_.clear(), positions_.clear(), row_begin_.assign(1, 0), kv_len_.clear(), out_rows_.clear();
  int64_t pages_max = 1;
  for (const StepInput& in : inputs) {
    const int64_t T = static_cast<int64_t>(in.ids.size()), begin = in.sequence->length();
    ids_.insert(ids_.end(), in.ids.begin(), in.ids.end());
    for (int64_t t = 0; t < T; ++t) positions_.push_back(static_cast<int32_t>(begin + t));
    const int32_t end_row = static_cast<int32_t>(ids_.size());
    for (int64_t o = in.outputs; o > 0; --o) out_rows_.push_back(end_row - static_cast<int32_t>(o));
    row_begin_.push_back(end_row);
    kv_len_.push_back(static_cast<int32_t>(begin + T));
    pages_max = std::max(pages_max, (begin + T + kPagePositions - 1) / kPagePositions);
  }
  for (size_t g = 0; g < tables_.size(); ++g) {
    std::vector<int32_t>& rows = page_rows_[g];
    rows.assign(inputs.size() * static_cast<size_t>(pages_max), -1);
    for (size_t b = 0; b < inputs.size(); ++b)
      std::copy(inputs[b].sequence->pages[g].begin(), inputs[b].sequence->pages[g].end(),
                rows.begin() + static_cast<int64_t>(b) * pages_max);
    tables_[g] = {.pages = rows, .pages_max = pages_max};
  }

  const std::span<float> logits(logits_.data(), out_rows_.size() * static_cast<size_t>(spec().V));
  const std::span<float> results[] = {logits};
  graph::Plan& plan = plan_for(static_cast<int64_t>(ids_.size()));
  try {
    executor_->run(plan, {.weights = weights_,
                          .batch = {.ids = ids_,
                                    .positions = positions_,
                                    .row_begin = row_begin_,
                                    .kv_len = kv_len_,
                                    .tables = tables_,
                                    .adapter = {},
                                    .out_rows = out_rows_,
                                    .masks = {}},
                          .kv = kv_.get(),
                          .results = results});
    executor_->wait();
  } catch (...) {
    for (const StepInput& in : inputs) cache_->truncate(*in.sequence, in.sequence->length());
    throw;
  }
  for (const StepInput& in : inputs) cache_->commit(*in.sequence, in.ids);
  return logits;
}

}  // namespace hearth::decode
