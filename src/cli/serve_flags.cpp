#include "cli/serve_flags.h"

namespace hearth::cli {

std::vector<std::string> worker_arguments(const Context& context) {
  std::vector<std::string> words;
  for (const Flag& flag : kWorkerFlags) {
    const auto value = context.args().values().find(flag.name);
    if (value == context.args().values().end() || value->second.origin == Origin::fallback) continue;
    if (flag.name == "memory-budget") continue;  // each worker gets what is left
    for (const std::string& text : value->second.texts) {
      words.push_back("--" + std::string(flag.name));
      words.push_back(text);
    }
  }
  return words;
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
