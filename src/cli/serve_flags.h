// Flags that `hearth serve` hands on to the workers that it starts.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/context.h"
#include "cli/engine_flags.h"
#include "cli/limit_flag.h"
#include "cli/sampling_flags.h"

namespace hearth::cli {

// A flag of generation whose absence means that nothing was said.
consteval Flag unset_flag(std::string_view name) {
  for (Flag flag : kSamplingFlags)
    if (flag.name == name) {
      flag.fallback = {};
      return flag;
    }
  throw "no sampling flag has this name";
}

// Besides kEngineFlags.
inline constexpr std::array kRowFlags = {
    Flag{.name = "batch",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "answers that are made together at most (default: what memory holds, up to 64)",
         .aliases = "--parallel --decode-concurrency",
         .min = 1,
         .max = 1024},
    Flag{.name = "prompt-cache",
         .kind = ValueKind::size,
         .value = "SIZE",
         .fallback = "2GB",
         .help = "memory of the KV cache kept for later requests with the same beginning; 0: none",
         .min = 0},
    Flag{.name = "disk-cache",
         .kind = ValueKind::file,
         .value = "DIR",
         .help = "folder where prefixes of finished answers outlive memory and the process"},
    Flag{.name = "disk-cache-max",
         .kind = ValueKind::size,
         .value = "SIZE",
         .fallback = "10GB",
         .help = "of all files there; those used longest ago go first",
         .min = 0},
    Flag{.name = "adapter-memory",
         .kind = ValueKind::size,
         .value = "SIZE",
         .help =
             "memory kept for adapters (default: four of rank 32, at most a sixteenth of the budget); 0: none can be "
             "mounted",
         .min = 0},
    Flag{.name = "demote-idle",
         .kind = ValueKind::duration,
         .value = "TIME",
         .fallback = "300s",
         .help = "with --disk-cache: prefixes unused for so long are kept there alone, not in memory; 0: never",
         .min = 0},
    Flag{.name = "thinking",
         .kind = ValueKind::choice,
         .value = "on|off",
         .help = "whether models that may reason first do so, where a request does not say"},
    Flag{.name = "temperature",
         .kind = ValueKind::number,
         .value = "T",
         .help = "where a request names none",
         .aliases = "--temp",
         .min = 0,
         .max = 5},
    Flag{.name = "top-p", .kind = ValueKind::number, .value = "P", .help = "the same", .min = 0, .max = 1},
    Flag{.name = "top-k", .kind = ValueKind::integer, .value = "K", .help = "the same", .min = 0, .max = 1e6},
    Flag{.name = "min-p", .kind = ValueKind::number, .value = "P", .help = "the same", .min = 0, .max = 1},
    Flag{.name = "max-tokens",
         .kind = ValueKind::integer,
         .value = "N",
         .help = "the same",
         .aliases = "-n",
         .min = 1,
         .max = 1 << 28},
    Flag{.name = "tool-dialect",
         .kind = ValueKind::text,
         .value = "NAME",
         .help = "how the model writes calls of tools: hermes, qwen3-coder, minicpm5, gemma4, llama3, mistral, "
                 "mistral-args, generic (default: as its chat template and vocabulary say)",
         .filled = true},
    kLimitFlag,
    unset_flag("hlg-sampling"),
    unset_flag("hlg-width"),
    unset_flag("hlg-toe"),
    unset_flag("hlg-shoulder"),
    unset_flag("hlg-pivot-offset"),
    unset_flag("hlg-pivot"),
};
inline constexpr auto kWorkerFlags = joined(kEngineFlags, kRowFlags);

// One of kRowFlags.
consteval Flag row_flag(std::string_view name) {
  for (const Flag& flag : kRowFlags)
    if (flag.name == name) return flag;
  throw "no row flag has this name";
}

// Worker flags that the front goes by too: they hold from its start to its end.
inline constexpr std::string_view kFixedFlags[] = {"memory-budget", "numerics", "limit"};
bool is_fixed(std::string_view flag);

// The arguments that say the same to `hearth worker`: every kWorkerFlags value that was given; those of kFixedFlags as
// at the start. A model's own settings stand between: they win over files, and what a person says for this run wins
// over them.
struct WorkerArguments {
  std::vector<std::string> of_files, of_this_run;
  std::vector<std::string> with(const std::vector<std::string>& of_model) const;
};
WorkerArguments worker_arguments(const Args& args, const Args& at_start);

// Sampling fields of the flags over those of the model's generation_config, by the names of requests.
json::Object sampling_defaults(const Context& context, const json::Object& generation_config);

}  // namespace hearth::cli
