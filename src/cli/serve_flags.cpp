#include "cli/serve_flags.h"

namespace hearth::cli {

std::vector<std::string> WorkerArguments::with(const std::vector<std::string>& of_model) const {
  std::vector<std::string> words = of_files;
  for (const auto* more : {&of_model, &of_this_run}) words.insert(words.end(), more->begin(), more->end());
  return words;
}

WorkerArguments worker_arguments(const Context& context) {
  WorkerArguments arguments;
  for (const Flag& flag : kWorkerFlags) {
    const auto value = context.args().values().find(flag.name);
    if (value == context.args().values().end() || value->second.origin == Origin::fallback) continue;
    if (flag.name == "memory-budget") continue;  // each worker gets what is left
    const bool of_file = value->second.origin == Origin::project_file || value->second.origin == Origin::user_file;
    std::vector<std::string>& words = of_file ? arguments.of_files : arguments.of_this_run;
    for (const std::string& text : value->second.texts) {
      words.push_back("--" + std::string(flag.name));
      words.push_back(text);
    }
  }
  return arguments;
}

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
  return defaults;
}

}  // namespace hearth::cli
