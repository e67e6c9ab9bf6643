// Flags that load an engine, shared by every command that runs a model.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/command.h"
#include "cli/context.h"
#include "cli/open_model.h"
#include "model/model_text.h"
#include "cpu/pack_cache.h"
#include "decode/engine.h"

namespace hearth::cli {

// Words of --kv; "off", "8" and "4" are those of --kv-quant.
inline constexpr std::string_view kKvWords = "config|bf16|q8|q4|f32|off|8|4";

inline constexpr Flag kPackCacheFlag = {
    .name = "pack-cache",
    .kind = ValueKind::size,
    .value = "SIZE",
    .fallback = "20GB",
    .help = "disk space for repacked weights of all models; those used longest ago go first; 0: none are kept"};

// Spliced into a command's flags with joined().
inline constexpr std::array kEngineFlags = {
    Flag{.name = "executor",
         .kind = ValueKind::choice,
         .value = "cpu|reference",
         .fallback = "cpu",
         .help = "cpu, or the slow and exact reference"},
    Flag{.name = "threads",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "kernel threads (default: the cores this process may use)",
         .aliases = "-t",
         .min = 1,
         .max = 1024,
         .foreign_env = "OMP_NUM_THREADS"},
    Flag{.name = "context",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "positions of the longest conversation (default: as trained, if it fits)",
         .aliases = "-c --max-model-len",
         .min = 1,
         .max = 1 << 28},
    Flag{.name = "kv",
         .kind = ValueKind::choice,
         .value = kKvWords,
         .fallback = "config",
         .help =
             "format of the KV cache; config: as the model's kv_config.json says, else bf16; off, 8, 4: bf16, q8, q4",
         .aliases = "--kv-quant"},
    Flag{.name = "numerics",
         .kind = ValueKind::choice,
         .value = "parity|deterministic|fast",
         .fallback = "deterministic",
         .help = "exactness against speed; see docs/numerics.md"},
    Flag{.name = "memory-budget",
         .kind = ValueKind::size,
         .value = "SIZE",
         .help = "memory that may be used (default: 75 % of RAM or of the cgroup's limit)",
         .min = 1},
    kPackCacheFlag,
    Flag{.name = "prefill-chunk",
         .kind = ValueKind::integer,
         .value = "N",
         .fallback = "256",
         .help = "prompt tokens of one step",
         .min = 1,
         .max = 8192},
};

// One of them, for a command that takes some.
consteval Flag engine_flag(std::string_view name) {
  for (const Flag& flag : kEngineFlags)
    if (flag.name == name) return flag;
  throw "no engine flag has this name";
}

template <size_t A, size_t B>
constexpr std::array<Flag, A + B> joined(const std::array<Flag, A>& a, const std::array<Flag, B>& b) {
  std::array<Flag, A + B> all{};
  for (size_t i = 0; i < A; ++i) all[i] = a[i];
  for (size_t i = 0; i < B; ++i) all[A + i] = b[i];
  return all;
}

// A verb that evaluates a model: those that only count its bytes mount no adapter.
inline constexpr Flag kAdapterFlag = {.name = "adapter",
                                      .kind = ValueKind::file,
                                      .value = "DIR",
                                      .help = "a LoRA adapter that is on for everything; none: the model as it is",
                                      .aliases = "--adapter-path"};

inline constexpr auto kModelFlags = joined(kEngineFlags, std::array{kAdapterFlag});

// Where the time of a load went, in ms. `text` runs beside the others: the tokenizer's own thread, and how long the
// rest waited for it at the end.
struct LoadTimes {
  double open = 0;  // the file's head, the executor and its threads
  decode::EngineTimes engine;
  double text = 0, text_wait = 0;
  double total = 0;
};
json::Object times_json(const LoadTimes& times);

struct LoadedModel {
  hub::FoundModel found;
  std::unique_ptr<decode::Engine> engine;
  std::unique_ptr<model::ModelText> text;
  std::string adapter;  // id of the one that is on; empty: none
  LoadTimes times;
};

struct LoadRequest {
  std::string_view positional = "MODEL";
  int64_t gathered_max = 1;
  int64_t sequences_max = 1;
  bool needs_text = true;
  std::string called = {};     // what errors of its templates call the model; empty: its path
  int64_t context_wanted = 0;  // asked for when --context is absent, as far as the model was trained; 0: all that fits
  // Sets what depends on the model: how many rows, how large a pool.
  std::function<void(const model::Model& model, const graph::Executor& executor, decode::EngineOptions& options)> tune =
      {};
  // Sees the progress in place of the bar on stderr.
  std::function<void(int64_t done, int64_t total)> progress = {};
  // Sees the model's name and text before any weight is read: what it throws costs no load. Needs needs_text.
  std::function<void(const std::string& name, const model::ModelText& text)> first = {};
};

// Values that stand in for the flags of the same names; nullopt: the flag decides.
struct LoadOverrides {
  std::optional<std::string> executor, numerics, kv, adapter;
  int64_t memory_taken = 0;  // of the budget, by what is loaded already
};

// The options that the flags say. Throws Error{invalid_argument} naming the flag.
decode::EngineOptions engine_options(const Context& context, const LoadOverrides& overrides = {});
std::unique_ptr<graph::Executor> make_executor(const Context& context, const model::Model& model,
                                               const LoadOverrides& overrides = {});
// --threads, or the CPUs that the process may use; more threads than CPUs are warned about.
int thread_count(const Context& context);

// A word of --kv; nullopt for "config": the model decides.
std::optional<graph::KvFormat> kv_format(std::string_view word);

// Finds, opens and loads the positional MODEL, with --adapter mounted as the engine's default; the tokenizer is read
// beside the weights. Progress on stderr. The command's flags are kModelFlags.
LoadedModel load_model(const Context& context, const LoadRequest& request = {}, const LoadOverrides& overrides = {});

// Throws Error{out_of_memory}, naming the flags, when they ask for more positions than the context holds: before any
// of them is evaluated.
template <class... Values>
void require_positions(const LoadedModel& loaded, int64_t positions, fmt::format_string<Values...> flags,
                       Values&&... values) {
  if (positions > loaded.engine->context())
    fail(ErrorKind::out_of_memory, "{} need {} positions, the context of {} holds {}",
         fmt::format(flags, std::forward<Values>(values)...), positions, loaded.found.name, loaded.engine->context());
}

// Names one state of a model's files, all parts of it; nullopt when one of them is gone.
std::optional<std::string> state_of(const model::Model& model);

// Where repacked weights are kept, and the file of this model there; nullopt when none is to be kept, or when a file of
// the model is gone.
std::filesystem::path packed_folder(const hub::Env& env);
std::optional<cpu::PackCacheOptions> pack_cache_options(const Context& context, const model::Model& model);

int64_t peak_rss_bytes();

}  // namespace hearth::cli
