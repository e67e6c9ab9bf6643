// What a model needs and how fast it answers on this machine (spec server 39-43, 3.4): `hearth fit`, GET /fit and
// GET /library show the same document.
#pragma once
#include <cstdint>
#include <optional>

#include "cli/engine_flags.h"

namespace hearth::cli {

struct FitQuestion {
  std::optional<int64_t> positions;  // that must fit; nullopt: --context, else as trained
  double ram_gbs = 0;                // GB that all threads read of this machine's memory in a second; 0: not known
};

// Reads the model's headers alone. The command's flags are kEngineFlags.
json::Object fit_document(const Context& context, const model::Model& model, const FitQuestion& question);

// Measures FitQuestion::ram_gbs: a tenth of a second, and 128 MB meanwhile. Where there is no room for that it is 0,
// with a warning in the log.
double memory_gbs(int threads);

}  // namespace hearth::cli
