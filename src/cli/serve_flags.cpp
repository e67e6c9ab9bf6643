#include "cli/serve_flags.h"

#include <algorithm>
#include <iterator>

namespace hearth::cli {

bool is_fixed(std::string_view flag) {
  return std::find(std::begin(kFixedFlags), std::end(kFixedFlags), flag) != std::end(kFixedFlags);
}

std::vector<std::string> WorkerArguments::with(const std::vector<std::string>& of_model) const {
  std::vector<std::string> words = of_files;
  for (const auto* more : {&of_model, &of_this_run}) words.insert(words.end(), more->begin(), more->end());
  return words;
}

WorkerArguments worker_arguments(const Args& args, const Args& at_start) {
  WorkerArguments arguments;
  for (const Flag& flag : kWorkerFlags) {
    const auto& values = (is_fixed(flag.name) ? at_start : args).values();
    const auto value = values.find(flag.name);
    if (value == values.end() || value->second.origin == Origin::fallback) continue;
    if (flag.name == "memory-budget") continue;  // each worker gets what is left
    const bool of_file = value->second.origin == Origin::project_file || value->second.origin == Origin::user_file;
    std::vector<std::string>& words = of_file ? arguments.of_files : arguments.of_this_run;
    for (const std::string& text : value->second.texts) words.push_back(fmt::format("--{}={}", flag.name, text));
  }
  return arguments;
}

namespace {

// Nothing where no flag of the curve was given.
json::Object hlg_defaults(const Args& args) {
  json::Object hlg;
  const auto number = [&](const char* flag, const char* key) {
    if (const auto value = args.number(flag)) hlg[key] = *value;
  };
  number("hlg-width", "width");
  number("hlg-toe", "toe");
  number("hlg-shoulder", "shoulder");
  number("hlg-pivot-offset", "pivot_offset");
  if (const auto pivot = args.text("hlg-pivot")) hlg["pivot"] = *pivot;
  if (args.on("hlg-sampling") || hlg.size() > 0) hlg["enabled"] = args.on("hlg-sampling");
  return hlg;
}

}  // namespace

json::Object sampling_defaults(const Context& context, const json::Object& generation_config) {
  json::Object defaults;
  for (const char* key : {"temperature", "top_p", "top_k", "min_p"})
    if (const json::Value* value = generation_config.find(key); value && value->is_number()) defaults[key] = *value;
  if (const json::Value* penalty = generation_config.find("repetition_penalty"); penalty && penalty->is_number())
    defaults["repetition_penalty"] = *penalty;
  // A file that says "greedy" means it.
  if (const json::Value* sample = generation_config.find("do_sample");
      sample && sample->is_bool() && !sample->as_bool(""))
    defaults["temperature"] = 0;
  const Args& args = context.args();
  if (const auto t = args.number("temperature")) defaults["temperature"] = *t;
  if (const auto p = args.number("top-p")) defaults["top_p"] = *p;
  if (const auto k = args.integer("top-k")) defaults["top_k"] = *k;
  if (const auto p = args.number("min-p")) defaults["min_p"] = *p;
  if (const auto n = args.integer("max-tokens")) defaults["max_tokens"] = *n;
  if (json::Object hlg = hlg_defaults(args); hlg.size() > 0) defaults["hlg"] = std::move(hlg);
  if (const auto thinking = args.text("thinking")) defaults["enable_thinking"] = *thinking == "on";
  return defaults;
}

}  // namespace hearth::cli
