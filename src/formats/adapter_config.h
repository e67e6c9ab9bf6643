// adapter_config.json of mlx-lm and of PEFT: how the factors beside it are scaled.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::formats {

struct AdapterConfig {
  std::string base, revision;
  bool rslora = false;
  std::optional<double> scale;  // lora_parameters.scale
  std::optional<double> alpha;
  std::optional<int64_t> rank;
  std::vector<std::pair<std::string, double>> alphas, ranks;  // alpha_pattern, rank_pattern

  // Of a module with factors of rank R; `module` is spelled as the weight file has it. Throws Error{corrupt_file} when
  // rank_pattern or r says another rank and the scale hangs on it.
  float scale_of(std::string_view module, int64_t R, const std::string& what) const;
};

// Throws Error{corrupt_file} for wrong types and a config without a scale, Error{invalid_argument} for what is not
// supported, by name.
AdapterConfig parse_adapter_config(std::string_view text, const std::string& what);

}  // namespace hearth::formats
