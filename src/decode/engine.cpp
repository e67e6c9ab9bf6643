#include "decode/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "decode/load.h"
#include "decode/memory.h"
#include "decode/too_large.h"
#include "graph/op_info.h"
#include "graph/passes.h"
#include "model/forward.h"

namespace hearth::decode {

using graph::kPagePositions;

namespace {

class Stopwatch {
 public:
  double lap_ms() {
    const auto before = std::exchange(at_, std::chrono::steady_clock::now());
    return std::chrono::duration<double, std::milli>(at_ - before).count();
  }

 private:
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

}  // namespace

Engine::Engine(std::shared_ptr<model::Model> model, std::unique_ptr<graph::Executor> executor, EngineOptions options,
               const std::function<void(int64_t, int64_t)>& progress)
    : model_(std::move(model)), executor_(std::move(executor)), options_(options) {
  require_numerics(*executor_, options_.numerics);
  if (spec().encoder()) model::forward(spec(), {});  // refuses it
  Stopwatch watch;
  const MemoryPlan memory(*model_, *executor_, options_);
  graph::Program program = memory.program();
  const int64_t budget = options_.memory_budget > 0 ? options_.memory_budget : default_memory_budget();
  const int64_t fits = memory.largest(budget);
  context_ = options_.context > 0 ? options_.context : fits;
  if (context_ > spec().context)
    fail(ErrorKind::out_of_memory, "{}: a context of {} positions was asked for, the model was trained for {}",
         spec().file, context_, spec().context);
  if (fits <= 0 || context_ > fits) {
    const int64_t positions = std::max(context_, kPagePositions), needed = memory.at(positions).total();
    throw TooLarge(fmt::format("{}: a context of {} positions needs {} MB, the memory budget is {} MB ({} positions "
                               "fit); lower --context or raise --memory-budget",
                               spec().file, positions, needed / 1'000'000, budget / 1'000'000, fits),
                   needed, budget);
  }
  need_ = memory.at(context_);
  times_.admission = watch.lap_ms();

  weights_ = load_weights(*model_, *executor_, program, progress);
  times_.weights = watch.lap_ms();
  const auto prepared = [&, limits = plan_limits(options_, context_)](const graph::Program& p) {
    return Plans{executor_->prepare(p, limits[0]), executor_->prepare(p, limits[1])};
  };
  plain_ = prepared(program);
  std::vector<graph::AdapterModule> modules;
  if (options_.adapter_slots > 0) {
    graph::Program slotted = graph::with_adapter_slots(program);
    slotted_ = prepared(slotted);
    modules = std::move(slotted.adapter_modules);
  }
  times_.plans = watch.lap_ms();

  adapters_ =
      std::make_unique<AdapterSlots>(*executor_, std::move(modules), options_.adapter_slots, options_.adapter_rank_max);
  groups_ = program.kv_groups;
  std::vector<int64_t> pages;
  for (const graph::KvGroup& group : program.kv_groups) {
    pages.push_back(pool_pages(group, context_, options_));
    page_bytes_.push_back(graph::kv_page_bytes(group));
  }
  kv_ = executor_->make_kv(program, pages);
  cache_ = std::make_unique<KvCache>(program.kv_groups, *kv_, options_.sequences_max);
  if (options_.kv_ahead_bytes > 0) warmer_ = std::make_unique<PageWarmer>(*cache_, *kv_, options_.kv_ahead_bytes);
  logits_.resize(static_cast<size_t>(options_.gathered_max * spec().V));
  page_rows_.resize(program.kv_groups.size());
  tables_.resize(program.kv_groups.size());
}

int32_t Engine::mount_adapter(const formats::Adapter& adapter) {
  const formats::Adapter* const one[] = {&adapter};
  return mount_adapter(one);
}

int32_t Engine::mount_adapter(AdapterStack stack) {
  const int64_t budget = options_.memory_budget > 0 ? options_.memory_budget : default_memory_budget();
  const int64_t spare = std::max<int64_t>(0, budget - need_.total());
  return adapters_->mount(stack, need_.adapters + spare - adapters_->bytes());
}

void Engine::unmount_adapter(int32_t slot) {
  adapters_->unmount(slot);
  if (default_adapter_ == slot) default_adapter_ = kNoAdapter;
}

int32_t Engine::adapter_slot(int32_t slot) const {
  if (slot == kDefaultAdapter) return default_adapter_;
  if (slot != kNoAdapter && !adapters_->mounted(slot))
    fail(ErrorKind::invalid_argument, "adapter slot {} is empty", slot);
  return slot;
}

std::string Engine::adapter_name(int32_t slot) const {
  const int32_t resolved = slot == kDefaultAdapter ? default_adapter_ : slot;
  return adapters_->mounted(resolved) ? adapters_->id(resolved) : std::string();
}

void Engine::set_default_adapter(int32_t slot) { default_adapter_ = adapter_slot(slot); }

void Engine::use_adapter(int32_t slot, int64_t by) {
  if (slot >= 0) adapters_->use(slot, by);
}

void Engine::check(std::span<const StepInput> inputs) {
  int64_t rows = 0, outputs = 0;
  slots_.clear();
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
    slots_.push_back(adapter_slot(in.adapter));
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
  const bool adapts = std::ranges::any_of(slots_, [](int32_t slot) { return slot != kNoAdapter; });
  graph::Plan& plan = plan_of(adapts ? slotted_ : plain_, static_cast<int64_t>(ids_.size()));
  try {
    executor_->run(plan, {.weights = weights_,
                          .batch = {.ids = ids_,
                                    .positions = positions_,
                                    .row_begin = row_begin_,
                                    .kv_len = kv_len_,
                                    .tables = tables_,
                                    .adapter = slots_,
                                    .out_rows = out_rows_,
                                    .masks = {}},
                          .kv = kv_.get(),
                          .results = results,
                          .adapters = adapters_->factors()});
    executor_->wait();
  } catch (...) {
    for (const StepInput& in : inputs) cache_->truncate(*in.sequence, in.sequence->length());
    throw;
  }
  for (const StepInput& in : inputs) cache_->commit(*in.sequence, in.ids);
  return logits;
}

}  // namespace hearth::decode
