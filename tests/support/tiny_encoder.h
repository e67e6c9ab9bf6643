// A small BERT checkpoint made on the spot: config.json, model.safetensors, a WordPiece tokenizer of letters (single
// letters and "##" letters; ids 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], then a..z, ##a..##z), and pooling files.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/model.h"
#include "support/safetensors_file.h"
#include "support/temp_dir.h"

namespace hearth::test {

struct TinyEncoder {
  int64_t L = 2, D = 48, H = 3, F = 96, V = 56, positions = 64;
  std::string prefix;  // of the weights' names: "", "bert."
  std::string gamma = "weight", beta = "bias";
  uint64_t seed = 1;
  DType type = DType::f32;
  std::string modules = R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";  // "": no file
  std::string pooling = R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true})";
  std::string limits = R"({"max_seq_length": 32, "do_lower_case": false})";
  std::string config;  // further members of config.json, each with a comma in front
};

inline std::string letters_tokenizer() {
  std::string vocab;
  int id = 0;
  const auto add = [&](const std::string& piece) {
    vocab += fmt::format("{}\"{}\": {}", vocab.empty() ? "" : ", ", piece, id++);
  };
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) add(special);
  for (char c = 'a'; c <= 'z'; ++c) add(std::string(1, c));
  for (char c = 'a'; c <= 'z'; ++c) add("##" + std::string(1, c));
  const auto special = [](int at, const char* name) {
    return fmt::format(R"({{"id": {}, "content": "{}", "special": true}})", at, name);
  };
  return fmt::format(
      R"({{"added_tokens": [{}, {}, {}, {}],
          "normalizer": {{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                          "strip_accents": null, "lowercase": true}},
          "pre_tokenizer": {{"type": "BertPreTokenizer"}},
          "post_processor": {{"type": "TemplateProcessing",
            "single": [{{"SpecialToken": {{"id": "[CLS]", "type_id": 0}}}}, {{"Sequence": {{"id": "A", "type_id": 0}}}},
                       {{"SpecialToken": {{"id": "[SEP]", "type_id": 0}}}}],
            "special_tokens": {{"[CLS]": {{"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
                                "[SEP]": {{"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}}}}},
          "model": {{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                     "max_input_chars_per_word": 100, "vocab": {{{}}}}}}})",
      special(0, "[PAD]"), special(1, "[UNK]"), special(2, "[CLS]"), special(3, "[SEP]"), vocab);
}

inline void write_tiny_encoder(const TinyEncoder& m, const TempDir& dir) {
  dir.write("config.json", fmt::format(R"({{"model_type": "bert", "num_hidden_layers": {}, "hidden_size": {},
    "num_attention_heads": {}, "intermediate_size": {}, "vocab_size": {}, "max_position_embeddings": {},
    "hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2{}}})",
                                       m.L, m.D, m.H, m.F, m.V, m.positions, m.config));
  dir.write("tokenizer.json", letters_tokenizer());
  if (!m.modules.empty()) dir.write("modules.json", m.modules);
  if (!m.pooling.empty()) dir.write("1_Pooling/config.json", m.pooling);
  if (!m.limits.empty()) dir.write("sentence_bert_config.json", m.limits);

  SafetensorsFile file;
  Random random(m.seed);
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, double mean, double scale) {
    int64_t count = 1;
    for (const int64_t d : shape) count *= d;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = static_cast<float>(mean + scale * random.normal());
    file.add(m.prefix + name, m.type, shape, values);
  };
  const auto norm = [&](const std::string& name) {
    add(name + "." + m.gamma, {m.D}, 1, 0.1);
    add(name + "." + m.beta, {m.D}, 0, 0.1);
  };
  const auto linear = [&](const std::string& name, int64_t N, int64_t K) {
    add(name + ".weight", {N, K}, 0, 0.2);
    add(name + ".bias", {N}, 0, 0.1);
  };
  add("embeddings.word_embeddings.weight", {m.V, m.D}, 0, 1);
  add("embeddings.position_embeddings.weight", {m.positions, m.D}, 0, 0.3);
  add("embeddings.token_type_embeddings.weight", {2, m.D}, 0, 0.3);
  norm("embeddings.LayerNorm");
  for (int64_t i = 0; i < m.L; ++i) {
    const std::string layer = fmt::format("encoder.layer.{}.", i);
    for (const char* name : {"query", "key", "value"}) linear(layer + "attention.self." + name, m.D, m.D);
    linear(layer + "attention.output.dense", m.D, m.D);
    norm(layer + "attention.output.LayerNorm");
    linear(layer + "intermediate.dense", m.F, m.D);
    linear(layer + "output.dense", m.D, m.F);
    norm(layer + "output.LayerNorm");
  }
  linear("pooler.dense", m.D, m.D);
  dir.write("model.safetensors", file.bytes());
}

// The folder lives as long as the caller's TempDir.
inline std::unique_ptr<model::Model> open_tiny_encoder(const TinyEncoder& m, const TempDir& dir) {
  write_tiny_encoder(m, dir);
  return model::Model::open(dir.path());
}

}  // namespace hearth::test
