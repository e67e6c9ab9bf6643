// RoPE rules: from a rope_type and its numbers to inverse frequencies (spec models 2.3).
#pragma once
#include <functional>
#include <map>
#include <string>

#include "base/json.h"
#include "graph/program.h"

namespace hearth::model {

// What the file calls a number, for errors: by the config's name of it. A name without an entry is the file's own.
using RopeKeys = std::map<std::string, std::string, std::less<>>;

struct RopeInput {
  std::string type = "default";  // default linear dynamic llama3 yarn longrope proportional mrope
  double base = 0;
  int64_t Dh = 0, rot = 0;  // head width, columns that turn
  int64_t context = 0;      // trained maximum
  json::Value numbers;      // the rope_scaling / rope_parameters object; null: none
  bool interleaved = false;
  RopeKeys keys = {};  // of rope_theta, rope_type, partial_rotary_factor and of the members of `numbers`
};

// Throws Error{invalid_argument} for an unknown type, Error{corrupt_file} for absent numbers and for those that make no
// sense, each by its key; `what` is the file.
graph::RopeSpec make_rope(const RopeInput& input, const std::string& what);

}  // namespace hearth::model
