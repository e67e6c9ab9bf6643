// A small llama or mistral checkpoint made on the spot, so that tests need no files: config.json, model.safetensors, a
// byte-level tokenizer (ids 0 to 255 are the bytes, 256 <s>, 257 </s>).
#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/model.h"
#include "support/safetensors_file.h"
#include "support/temp_dir.h"
#include "text/tokenizer_tables.h"

namespace hearth::test {

struct TinyModel {
  int64_t L = 2, D = 64, H = 2, Hkv = 1, Dh = 64, F = 96, V = 258;
  int64_t context = 512;
  int64_t window = 0;  // above 0: mistral with that window in every layer
  bool tied = false;
  uint64_t seed = 1;
  DType type = DType::f32;
  // Instead of random weights: after token `first` comes `second`, whatever stands before (layers add nothing, the
  // table is the identity). D is then V.
  std::vector<std::pair<int32_t, int32_t>> chain;
  std::string config;  // further members of config.json, each with a comma in front
};

inline void write_tiny_model(TinyModel m, const TempDir& dir) {
  if (!m.chain.empty()) m.D = m.V;
  dir.write("config.json",
            fmt::format(R"({{"model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {},
                "num_key_value_heads": {}, "head_dim": {}, "intermediate_size": {}, "vocab_size": {}, {}
                "max_position_embeddings": {}, "rms_norm_eps": 1e-6, "rope_theta": 10000, "tie_word_embeddings": {},
                "eos_token_id": 257, "torch_dtype": "{}"{}}})",
                        m.window > 0 ? "mistral" : "llama", m.L, m.D, m.H, m.Hkv, m.Dh, m.F, m.V,
                        m.window > 0 ? fmt::format("\"sliding_window\": {},", m.window) : "", m.context, m.tied,
                        m.type == DType::f32 ? "float32" : "bfloat16", m.config));
  dir.write("tokenizer.json", text::byte_level_json({}));
  dir.write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");

  SafetensorsFile file;
  Random random(m.seed);
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, auto&& value) {
    int64_t count = 1;
    for (const int64_t d : shape) count *= d;
    std::vector<float> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value(i);
    file.add(name + ".weight", m.type, shape, values);
  };
  const bool chained = !m.chain.empty();
  const auto matrix = [&](const std::string& name, int64_t N, int64_t K, double scale) {
    add(name, {N, K}, [&](int64_t) { return chained ? 0.0f : static_cast<float>(scale * random.normal()); });
  };
  const auto norm = [&](const std::string& name) {
    add(name, {m.D}, [&](int64_t) { return chained ? 1.0f : static_cast<float>(1 + 0.1 * random.normal()); });
  };
  if (chained) add("model.embed_tokens", {m.V, m.D}, [&](int64_t i) { return i / m.D == i % m.D ? 1.0f : 0.0f; });
  else matrix("model.embed_tokens", m.V, m.D, 1);
  for (int64_t i = 0; i < m.L; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    norm(layer + "input_layernorm");
    matrix(layer + "self_attn.q_proj", m.H * m.Dh, m.D, 0.2);
    matrix(layer + "self_attn.k_proj", m.Hkv * m.Dh, m.D, 0.2);
    matrix(layer + "self_attn.v_proj", m.Hkv * m.Dh, m.D, 0.2);
    matrix(layer + "self_attn.o_proj", m.D, m.H * m.Dh, 0.2);
    norm(layer + "post_attention_layernorm");
    matrix(layer + "mlp.gate_proj", m.F, m.D, 0.2);
    matrix(layer + "mlp.up_proj", m.F, m.D, 0.2);
    matrix(layer + "mlp.down_proj", m.D, m.F, 0.2);
  }
  norm("model.norm");
  if (chained) {
    std::vector<int32_t> next(static_cast<size_t>(m.V), -1);
    for (const auto& [from, to] : m.chain) next[static_cast<size_t>(from)] = to;
    add("lm_head", {m.V, m.D}, [&](int64_t i) { return next[static_cast<size_t>(i % m.D)] == i / m.D ? 1.0f : 0.0f; });
  } else if (!m.tied) {
    matrix("lm_head", m.V, m.D, 0.3);
  }
  dir.write("model.safetensors", file.bytes());
}

// The folder lives as long as the caller's TempDir.
inline std::unique_ptr<model::Model> open_tiny_model(const TinyModel& m, const TempDir& dir) {
  write_tiny_model(m, dir);
  return model::Model::open(dir.path());
}

}  // namespace hearth::test
