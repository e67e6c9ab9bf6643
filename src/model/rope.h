// RoPE rules: from a rope_type and its numbers to inverse frequencies (spec models 2.3).
#pragma once
#include <optional>
#include <string>

#include "base/json.h"
#include "graph/program.h"

namespace hearth::model {

struct RopeInput {
  std::string type = "default";  // default linear dynamic llama3 yarn longrope proportional mrope
  double base = 0;
  int64_t Dh = 0, rot = 0;  // head width, columns that turn
  int64_t context = 0;      // trained maximum
  json::Value numbers;      // the rope_scaling / rope_parameters object; null: none
  bool interleaved = false;
};

// Throws Error{invalid_argument} for an unknown type, Error{corrupt_file} for absent numbers; `what` is the config's
// place.
graph::RopeSpec make_rope(const RopeInput& input, const std::string& what);

}  // namespace hearth::model
