// One loaded model on one executor: ragged steps over any number of sequences. Knows ids and tensors, no text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/adapter_slots.h"
#include "decode/kv_cache.h"
#include "decode/page_warmer.h"
#include "graph/executor.h"
#include "model/model.h"

namespace hearth::decode {

struct EngineOptions {
  graph::Numerics numerics = graph::Numerics::deterministic;
  std::optional<graph::KvFormat> kv;  // none: what the model's kv_config says, else bf16
  std::optional<DType> activation;    // none: the checkpoint's type in parity mode, f32 otherwise
  int64_t context = 0;                // positions of the longest sequence; 0: as trained, less if memory is short
  int64_t sequences_max = 1;          // rows that decode together
  int64_t pool_positions = 0;         // that all sequences hold together; 0: each its whole context
  int64_t kv_ahead_bytes = 0;         // KV memory that is made ready before a step needs it, see page_warmer.h; 0: none
  int64_t prefill_chunk = 256;        // rows of a prefill step
  int64_t gathered_max = 1;           // logit rows of a step
  int64_t memory_budget = 0;          // bytes; 0: 0.75 of RAM or of the cgroup limit
  int64_t adapter_slots = 0;          // adapters that can be mounted at once, at most kAdapterSlotsMax
  int64_t adapter_rank_max = 512;     // of a slot: ranks of a stack add up
  int64_t adapter_bytes = 0;          // kept for adapters; beyond it they get what the budget happens to leave
};

inline constexpr int64_t kAdapterSlotsMax = 64;

// What the model needs, known before anything is loaded (DESIGN 8).
struct MemoryNeed {
  int64_t weights = 0;  // after repack
  int64_t kv = 0;       // pages of every sequence
  int64_t logits = 0;
  int64_t adapters = 0;         // as EngineOptions::adapter_bytes says
  int64_t arena = 0;            // working memory of both plans: values between ops, scratch of threads
  int64_t loading = 0;          // beside the weights, while the largest ones are repacked; gone afterwards
  int64_t process = 0;          // the program itself and the tokenizer
  int64_t kv_per_position = 0;  // bytes; window groups count once they are full as nothing
  int64_t total() const { return process + weights + std::max(loading, kv + logits + adapters + arena); }
};
MemoryNeed memory_need(const model::Model& model, const graph::Executor& executor, const EngineOptions& options,
                       int64_t context);
int64_t default_memory_budget();  // 0.75 of RAM or of the cgroup limit
// The largest context, up to the trained one, that fits the budget; 0 when not even one page does.
int64_t largest_context(const model::Model& model, const graph::Executor& executor, const EngineOptions& options,
                        int64_t budget);

// Where the time of a load went, in ms.
struct EngineTimes {
  double admission = 0;  // the forward written, memory predicted
  double weights = 0;    // read and checked, or repacked
  double plans = 0;      // compiled, their memory taken; a repack is written to disk here
};

// Work of one sequence in a step: the ids to evaluate behind what is cached; logits of the last `outputs` of them.
struct StepInput {
  Sequence* sequence = nullptr;
  std::span<const int32_t> ids;
  int64_t outputs = 1;
  int32_t adapter = kDefaultAdapter;
};

// Engine thread only.
class Engine {
 public:
  // Loads: repacks every weight into the executor, builds the plans, maps the KV cache. Throws Error{out_of_memory}
  // with both numbers when the context asked for does not fit; Error{corrupt_file} for weights that do not match;
  // Error{invalid_argument} for an encoder, which writes no text.
  // progress(done, total) counts bytes of weights.
  // The model is shared with whoever reads its tokenizer meanwhile.
  Engine(std::shared_ptr<model::Model> model, std::unique_ptr<graph::Executor> executor, EngineOptions options,
         const std::function<void(int64_t done, int64_t total)>& progress = {});

  const model::Model& model() const { return *model_; }
  const model::ModelSpec& spec() const { return model_->spec(); }
  graph::Executor& executor() { return *executor_; }
  KvCache& cache() { return *cache_; }
  // Tells whether steps follow each other: where none do, KV memory may be made ready. Any thread.
  void set_busy(bool busy) {
    if (warmer_) warmer_->set_busy(busy);
  }
  graph::KvStorage& kv() { return *kv_; }
  const EngineOptions& options() const { return options_; }
  int64_t context() const { return context_; }  // positions that fit
  int64_t kv_bytes() const { return kv_->bytes(); }
  std::span<const int64_t> page_bytes() const { return page_bytes_; }  // by KV group
  // Pages of a group that so many positions of one sequence take at most.
  int64_t pages_for(size_t group, int64_t positions) const {
    return pages_needed(groups_[group], positions, options_.prefill_chunk);
  }
  const MemoryNeed& need() const { return need_; }  // as predicted before the load
  const EngineTimes& times() const { return times_; }

  // Evaluates all inputs in one step and returns their logits, [sum of outputs, V], in the order of the inputs; valid
  // until the next step. The sum of ids is at most prefill_chunk (or sequences_max), the sum of outputs at most
  // gathered_max. Pages are reserved first: Error{out_of_memory} when the pool is dry, then nothing has changed.
  std::span<float> step(std::span<const StepInput> inputs);

  // Adapters come and go between steps; a mount that fails changes nothing, and without an adapter a row's bits are the
  // base model's, whoever else is in the step. A stack is the sum of its adapters, in a slot of its own. What a
  // sequence has cached belongs to the adapter that it was evaluated with: never go on with it under another one.
  // Throws Error{invalid_argument} for factors that do not fit the model or the slot's rank, Error{busy} when no slot
  // is free, Error{out_of_memory} with both numbers.
  int32_t mount_adapter(const formats::Adapter& adapter);
  int32_t mount_adapter(AdapterStack stack);
  // Error{not_found} for an empty slot, Error{busy} while requests use it. A default becomes the base model again.
  void unmount_adapter(int32_t slot);
  bool has_adapter(int32_t slot) const { return adapters_->mounted(slot); }
  // The id of the adapter in it, of a stack all of them ("a+b"); empty: the base model.
  std::string adapter_name(int32_t slot) const;
  int64_t adapter_bytes() const { return adapters_->bytes(); }  // of those that are mounted
  // What StepInputs with kDefaultAdapter get: at first kNoAdapter.
  void set_default_adapter(int32_t slot);
  int32_t default_adapter() const { return default_adapter_; }
  // kDefaultAdapter resolved; Error{invalid_argument} for a slot without an adapter.
  int32_t adapter_slot(int32_t slot) const;
  // Counts who will step with a slot: it cannot be unmounted meanwhile. kNoAdapter is allowed.
  void use_adapter(int32_t slot, int64_t by);
  int64_t adapter_uses(int32_t slot) const { return adapters_->uses(slot); }

  // The plan that a step of M rows without adapters runs on; for probes.
  graph::Plan& plan_for(int64_t M) { return plan_of(plain_, M); }

 private:
  struct Plans {
    std::unique_ptr<graph::Plan> prefill, decode;
  };
  void check(std::span<const StepInput> inputs);
  graph::Plan& plan_of(const Plans& plans, int64_t M) const {
    return M <= options_.sequences_max ? *plans.decode : *plans.prefill;
  }

  std::shared_ptr<model::Model> model_;
  std::unique_ptr<graph::Executor> executor_;
  EngineOptions options_;
  int64_t context_ = 0;
  MemoryNeed need_;
  EngineTimes times_;
  std::vector<graph::WeightHandle> weights_;
  Plans plain_, slotted_;  // slots for adapters keep linears from being fused: steps without adapters go without them
  std::unique_ptr<graph::KvStorage> kv_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<PageWarmer> warmer_;
  std::vector<graph::KvGroup> groups_;
  std::vector<int64_t> page_bytes_;
  std::unique_ptr<AdapterSlots> adapters_;
  int32_t default_adapter_ = kNoAdapter;
  std::vector<float> logits_;
  // Views of a step, sized once.
  std::vector<int32_t> ids_, positions_, row_begin_, kv_len_, out_rows_, slots_;
  std::vector<std::vector<int32_t>> page_rows_;
  std::vector<graph::PageTable> tables_;
};

}  // namespace hearth::decode
