// Sizes of a model in memory before it is loaded.
#pragma once
#include "decode/engine.h"
#include "model/forward.h"

namespace hearth::decode {

// What the forward is written with. Throws Error{invalid_argument} for a quantized cache whose groups do not fit Dh.
model::ForwardOptions forward_options(const model::Model& model, const EngineOptions& options);

}  // namespace hearth::decode
