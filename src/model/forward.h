// The forward of every architecture, written once against graph::Builder.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "formats/adapter.h"
#include "graph/program.h"
#include "model/spec.h"

namespace hearth::model {

struct ForwardOptions {
  DType activation = DType::f32;    // A: f32 for deterministic and fast, the checkpoint's type for parity
  std::vector<graph::KvFormat> kv;  // one a layer; empty: bf16 everywhere
  bool centre_keys = false;         // bf16 keys are cached less the steady part of their bias (key_offset())
};

// What is added to the rotated keys of a layer, [Hkv * Dh], given the bias of k_proj: minus what the bias is after the
// rotation, in the pairs that turn by less than a radian over the whole context; 0 in the others. A constant vector
// adds the same number to all scores of a query, so no probability changes; but the cache rounds what is left (ADR
// 0009). Empty where that does not hold: no bias, capped scores, rotations of another kind.
std::vector<float> key_offset(const ModelSpec& spec, int64_t layer, std::span<const float> bias);
bool has_key_offset(const ModelSpec& spec, int64_t layer);
inline constexpr std::string_view kKeyOffset = ".key_offset";  // behind the module path of k_proj: the weight's name

// embed, L layers, head: logits [gathered rows, V] are the only result. Throws Error{invalid_argument} for an encoder,
// which has no head. Weight names are the checkpoint's module paths:
// matrices "model.layers.0.self_attn.q_proj", vectors "model.layers.0.input_layernorm" and
// "model.layers.0.self_attn.q_proj.bias".
graph::Program forward(const ModelSpec& spec, const ForwardOptions& options);

// The linears that adapters may change, in the order of the forward: all but the head.
std::vector<formats::AdapterLinear> adapter_linears(const ModelSpec& spec);

struct EmbeddingForward {
  DType activation = DType::f32;
  graph::Pooling pooling = graph::Pooling::mean;
  bool normalize = true;
};
// embed, L layers, the last norm, pooling: vectors [sequences, D] in fp32 are the only result. Nothing is cached: a
// step holds whole texts. Of an encoder (BatchView::masks: full) or of a decoder's layers (causal).
graph::Program embedding_forward(const ModelSpec& spec, const EmbeddingForward& options);

}  // namespace hearth::model
