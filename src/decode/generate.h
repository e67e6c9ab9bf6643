// One answer of one sequence: prefix reuse, chunked prefill, the token loop.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "decode/engine.h"
#include "decode/sampler.h"

namespace hearth::decode {

enum class FinishReason : uint8_t { stop, length, cancelled };
std::string_view name_of(FinishReason reason);

struct GenerateOptions {
  SamplerOptions sampler;
  int64_t max_tokens = 256;
  std::vector<int32_t> end_ids;      // generation stops at one; it is not reported
  std::vector<int32_t> newline_ids;  // exempt from xtc, as end ids are
  const std::atomic<bool>* cancel = nullptr;
};

struct GenerateStats {
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double queue_ms = 0;  // before anything was done for it; a scheduler's requests alone
  double prefill_ms = 0, decode_ms = 0, ttft_ms = 0;
  double prefill_tps() const;  // evaluated prompt tokens a second
  double decode_tps() const;   // tokens after the first a second of decoding
};

struct Generated {
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::stop;
  GenerateStats stats;
  int64_t max_tokens = 0;  // after lowering to the room left in the context
};

// For logits that are no numbers, corrupt_file: `what`, and what is to blame, the adapter of that name
// (Engine::adapter_name) or, where it is empty, the model's file. Any thread.
Error no_numbers(const Engine& engine, std::string_view adapter, std::string_view what);

// sampler.sample(), and no_numbers() where it finds none. `adapter`: the slot, as StepInput has it.
Sampled draw_token(Sampler& sampler, const Engine& engine, int32_t adapter, std::span<float> logits,
                   std::span<const int32_t> history, uint64_t step);

// Evaluates `prompt` behind the longest prefix that `sequence` has cached (the last prompt token is always evaluated),
// then draws tokens. on_token(id) is called as each is known; false stops (finish = stop). On return the sequence holds
// prompt and answer but for tokens not yet evaluated.
// Throws Error{invalid_argument} for an empty prompt, Error{out_of_memory} for one beyond the context, with both
// numbers, before any work.
Generated generate(Engine& engine, Sequence& sequence, std::span<const int32_t> prompt, const GenerateOptions& options,
                   const std::function<bool(int32_t)>& on_token);

// Teacher-forced logits of a text, some rows at a time, from an empty sequence. The engine must outlive it.
class Evaluation {
 public:
  // Throws Error{out_of_memory} when `length` ids do not fit the context.
  Evaluation(Engine& engine, int64_t length);
  ~Evaluation();
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  int64_t rows_max() const;  // ids of a call of next()
  // Logits [ids, V] behind each of the next ids; valid until the engine's next step. As Engine::step throws.
  std::span<const float> next(std::span<const int32_t> ids);

 private:
  Engine& engine_;
  Sequence sequence_;
};

// The same for all of ids: each(row, logits [V]) for every position, in order.
void evaluate(Engine& engine, std::span<const int32_t> ids,
              const std::function<void(int64_t row, std::span<const float> logits)>& each);

}  // namespace hearth::decode
