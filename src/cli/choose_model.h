// Which model `hearth serve` begins with where none is named (spec server 55).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace hearth::cli {

// A model whose headers were read.
struct Candidate {
  std::string name;
  json::Object facts;  // of server::Headers
};

// `preferred` if it fits; else the largest that takes at most 0.6 of the budget; else the largest that fits. A model
// fits when its typical context does. Embedding models answer nobody who chats: they come last. Throws
// Error{out_of_memory} with the smallest need and the budget where none fits. `models` is not empty.
std::string choose_model(const std::vector<Candidate>& models, const std::string& preferred);

}  // namespace hearth::cli
