// The forward of every architecture, written once against graph::Builder.
#pragma once
#include <vector>

#include "graph/program.h"
#include "model/spec.h"

namespace hearth::model {

struct ForwardOptions {
  DType activation = DType::f32;    // A: f32 for deterministic and fast, the checkpoint's type for parity
  std::vector<graph::KvFormat> kv;  // one a layer; empty: bf16 everywhere
};

// embed, L layers, head: logits [gathered rows, V] are the only result. Weight names are the checkpoint's module paths:
// matrices "model.layers.0.self_attn.q_proj", vectors "model.layers.0.input_layernorm" and
// "model.layers.0.self_attn.q_proj.bias".
graph::Program forward(const ModelSpec& spec, const ForwardOptions& options);

}  // namespace hearth::model
