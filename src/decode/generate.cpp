#include "decode/generate.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace hearth::decode {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return static_cast<int64_t>(i);
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop: return "stop";
    case FinishReason::length: return "length";
    case FinishReason::cancelled: return "cancelled";
  }
  return "unknown";
}

double GenerateStats::prefill_tps() const {
  return prefill_ms > 0 ? 1000 * static_cast<double>(prompt_tokens - cached_tokens) / prefill_ms : 0;
}
double GenerateStats::decode_tps() const {
  return decode_ms > 0 && generated_tokens > 1 ? 1000 * static_cast<double>(generated_tokens - 1) / decode_ms : 0;
}

Error no_numbers(const Engine& engine, std::string_view adapter, std::string_view what) {
  return Error(ErrorKind::corrupt_file,
               adapter.empty() ? fmt::format("{}: {}; hearth doctor --deep shows the weights that are to blame",
                                             engine.spec().file, what)
                               : fmt::format("adapter {}: {}; without an adapter (\"none\") it shows whether the model "
                                             "is to blame",
                                             adapter, what));
}

Sampled draw_token(Sampler& sampler, const Engine& engine, int32_t adapter, std::span<float> logits,
                   std::span<const int32_t> history, uint64_t step) {
  try {
    return sampler.sample(logits, history, step);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt_file) throw;
    throw no_numbers(engine, engine.adapter_name(adapter), error.what());
  }
}

Generated generate(Engine& engine, Sequence& sequence, std::span<const int32_t> prompt, const GenerateOptions& options,
                   const std::function<bool(int32_t)>& on_token) {
  const auto start = Clock::now();
  const int64_t prompt_tokens = static_cast<int64_t>(prompt.size());
  if (prompt.empty()) fail(ErrorKind::invalid_argument, "the prompt is empty");
  if (prompt_tokens > engine.context())
    fail(ErrorKind::out_of_memory, "the prompt has {} tokens, the context holds {}", prompt_tokens, engine.context());
  if (options.max_tokens < 0)
    fail(ErrorKind::invalid_argument, "max-tokens is {}, expected 0 or more", options.max_tokens);

  Generated result;
  // The last token drawn need not be evaluated, so prompt + answer may pass the context by one.
  result.max_tokens = std::min(options.max_tokens, engine.context() - prompt_tokens + 1);
  std::vector<int32_t> exempt = options.end_ids;
  exempt.insert(exempt.end(), options.newline_ids.begin(), options.newline_ids.end());
  Sampler sampler(options.sampler, engine.spec().V, std::move(exempt), 0);

  KvCache& cache = engine.cache();
  const int64_t shared = std::min(common_prefix(sequence.ids, prompt), prompt_tokens - 1);
  const int64_t cached = cache.reusable_length(sequence, shared);
  cache.truncate(sequence, cached);
  result.stats.prompt_tokens = prompt_tokens;
  result.stats.cached_tokens = cached;

  const auto cancelled = [&] { return options.cancel && options.cancel->load(std::memory_order_relaxed); };
  std::span<float> logits;
  for (int64_t at = cached; at < prompt_tokens;) {
    if (cancelled()) {
      result.finish = FinishReason::cancelled;
      result.stats.prefill_ms = ms_since(start);
      return result;
    }
    const int64_t n = std::min(engine.options().prefill_chunk, prompt_tokens - at);
    const bool last = at + n == prompt_tokens;
    const StepInput input{&sequence, prompt.subspan(static_cast<size_t>(at), static_cast<size_t>(n)), last ? 1 : 0};
    logits = engine.step({&input, 1});
    at += n;
  }
  result.stats.prefill_ms = ms_since(start);

  std::vector<int32_t> history(prompt.begin(), prompt.end());
  history.reserve(history.size() + static_cast<size_t>(result.max_tokens));
  const auto decode_start = Clock::now();
  result.finish = FinishReason::length;
  for (int64_t i = 0; i < result.max_tokens; ++i) {
    if (cancelled()) {
      result.finish = FinishReason::cancelled;
      break;
    }
    const Sampled token = draw_token(sampler, engine, kDefaultAdapter, logits, history, static_cast<uint64_t>(i));
    if (contains(options.end_ids, token.id)) {
      result.finish = FinishReason::stop;
      break;
    }
    result.ids.push_back(token.id);
    result.logprobs.push_back(token.logprob);
    history.push_back(token.id);
    ++result.stats.generated_tokens;
    if (i == 0) result.stats.ttft_ms = ms_since(start);
    if (!on_token(token.id)) {
      result.finish = FinishReason::stop;
      break;
    }
    if (i + 1 == result.max_tokens) break;
    const StepInput input{&sequence, std::span<const int32_t>(&history.back(), 1), 1};
    logits = engine.step({&input, 1});
  }
  result.stats.decode_ms = ms_since(decode_start);
  return result;
}

Evaluation::Evaluation(Engine& engine, int64_t length) : engine_(engine), sequence_(engine.cache().make()) {
  if (length > engine.context())
    fail(ErrorKind::out_of_memory, "{} ids do not fit the context of {}", length, engine.context());
}

Evaluation::~Evaluation() { engine_.cache().free(sequence_); }

int64_t Evaluation::rows_max() const {
  return std::min(engine_.options().prefill_chunk, engine_.options().gathered_max);
}

std::span<const float> Evaluation::next(std::span<const int32_t> ids) {
  const StepInput input{&sequence_, ids, static_cast<int64_t>(ids.size())};
  return engine_.step({&input, 1});
}

void evaluate(Engine& engine, std::span<const int32_t> ids,
              const std::function<void(int64_t, std::span<const float>)>& each) {
  if (ids.empty()) fail(ErrorKind::invalid_argument, "there are no ids to evaluate");
  Evaluation evaluation(engine, static_cast<int64_t>(ids.size()));
  const auto chunk = static_cast<size_t>(evaluation.rows_max()), V = static_cast<size_t>(engine.spec().V);
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t n = std::min(chunk, ids.size() - at);
    const std::span<const float> logits = evaluation.next(ids.subspan(at, n));
    for (size_t i = 0; i < n; ++i) each(static_cast<int64_t>(at + i), logits.subspan(i * V, V));
  }
}

}  // namespace hearth::decode
