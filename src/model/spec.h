// What a model is, as data (spec models 14): read from config.json or GGUF metadata, consumed by the forward.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/gguf.h"
#include "graph/program.h"

namespace hearth::model {

// How a layer is put together; each value is one layer function of forward.cpp.
enum class LayerOrder : uint8_t {
  pre_norm,  // x + attn(norm(x)); x + mlp(norm(x))
  sandwich,  // x + norm(attn(norm(x))); x + norm(mlp(norm(x)))
  encoder,   // of encoder.cpp: norm(x + attn(x)); norm(x + mlp(x)), LayerNorm, every row sees every row
};

struct LayerSpec {
  int64_t window = 0;  // 0: all positions
  int32_t rope = 0;    // index into ModelSpec::ropes; -1: no rotary embedding
};

struct ModelSpec {
  std::string model_type;  // "llama", "qwen2", ... as in config.json
  std::string file;        // for messages
  LayerOrder order = LayerOrder::pre_norm;
  DType dtype = DType::bf16;  // A of the checkpoint, used by parity mode
  int64_t L = 0, D = 0, H = 0, Hkv = 0, Dh = 0, F = 0, V = 0;
  int64_t context = 0;  // trained positions
  float eps = 0;
  graph::Activation activation = graph::Activation::silu;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool qk_norm = false;         // RMSNorm over Dh on q and k before rope
  bool norm_plus_one = false;   // files hold w with the meaning 1 + w
  bool gguf_pair_rows = false;  // q and k rows stand in the order of the interleaved rope (spec models 12)
  bool tied = false;            // the embedding table is the head; also true when the file has no head
  float embed_scale = 0;        // 0: none
  float attention_scale = 0;
  float attention_cap = 0, logit_cap = 0;
  std::vector<graph::RopeSpec> ropes;
  std::vector<LayerSpec> layers;  // L
  std::vector<int32_t> end_ids;   // of config and generation_config or GGUF; the tokenizer adds its own
  // Of encoders: rows of the table of learned positions, which of them is the first token's, rows of the table of
  // types.
  int64_t position_rows = 0, first_position = 0, token_types = 0;

  bool encoder() const { return order == LayerOrder::encoder; }  // makes vectors of texts, and no logits
};

// The families that are built, for messages and `hearth show`.
std::vector<std::string> supported_model_types();

// How well a family is watched (spec models 14).
enum class Support : uint8_t {
  supported,  // tests of its own compare its logits with an oracle's
  generic,    // driven by the same tables, tested with the others alone
};
std::string_view name_of(Support support);
Support support_of(std::string_view model_type);  // of a supported_model_types() member

// Throws Error{invalid_argument} for a model_type, rope_type or activation outside the supported ones (named, with the
// list) and Error{corrupt_file} for absent or impossible numbers.
ModelSpec parse_config(const json::Value& config, const std::string& file);
ModelSpec parse_gguf(const formats::GgufFile& gguf);

// Appends eos_token_id of a config, a number or a list of them; null: none. Throws Error{corrupt_file} for another type
// or an id that needs more than 32 bits; ids outside the vocabulary are left to decode::end_ids.
void add_end_ids(const json::Value* ids, const std::string& place, ModelSpec& spec);
void add_end_id(int64_t id, const std::string& place, ModelSpec& spec);

// Extents positive and within bounds: before anything of their size is made.
void check_extents(const ModelSpec& spec);
// Checks that hold for every family: extents, H a multiple of Hkv, layers of size L, no negative window.
void check(const ModelSpec& spec);

}  // namespace hearth::model
