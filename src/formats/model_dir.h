// A model directory: config files read, tokenizer files found, nothing interpreted. Weights are opened apart.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/config.h"

namespace hearth::formats {

// Paths of the files that are present.
struct TokenizerFiles {
  std::optional<std::filesystem::path> tokenizer_json, tokenizer_config, tokenizer_model, vocab_json, merges_txt,
      vocab_txt, added_tokens, special_tokens_map, chat_template_jinja, chat_template_json;
};

struct ModelDir {
  std::filesystem::path path;
  json::Value config;                             // config.json
  std::optional<json::Value> generation_config;   // generation_config.json
  std::optional<std::vector<KvLayer>> kv_config;  // kv_config.json
  std::optional<QuantTable> quantization;         // of config.json
  TokenizerFiles tokenizer;

  // Throws Error{not_found} without config.json; Error{corrupt_file, invalid_argument} as config.h says.
  static ModelDir open(const std::filesystem::path& dir);
};

}  // namespace hearth::formats
