// BERT and XLM-RoBERTa: configs, names in folders and GGUF files, refusals with their exact words.
#include <gtest/gtest.h>

#include "model/forward.h"
#include "model/spec.h"
#include "support/outcome.h"
#include "support/tiny_encoder.h"

namespace hearth::model {
namespace {

using test::outcome;
using test::TempDir;
using test::TinyEncoder;

ModelSpec parse(const std::string& more = "", const std::string& type = "bert") {
  json::Value config =
      json::parse(R"({"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40})",
                  "config.json");
  (*config.object())["model_type"] = type;
  const json::Value extra = json::parse("{" + more + "}", "more");
  for (const auto& [key, value] : *extra.object()) (*config.object())[key] = value;
  return parse_config(config, "config.json");
}

TEST(Encoder, defaults_are_those_of_bert) {
  const ModelSpec s = parse();
  EXPECT_TRUE(s.encoder());
  EXPECT_EQ(s.Dh, 8);
  EXPECT_EQ(s.Hkv, 3);
  EXPECT_EQ(s.V, 30522);
  EXPECT_EQ(s.context, 512);
  EXPECT_EQ(s.position_rows, 512);
  EXPECT_EQ(s.first_position, 0);
  EXPECT_EQ(s.token_types, 2);
  EXPECT_FLOAT_EQ(s.eps, 1e-12f);
  EXPECT_EQ(s.activation, graph::Activation::gelu);
  EXPECT_EQ(s.dtype, DType::f32);
  EXPECT_EQ(parse(R"("torch_dtype": "float16")").dtype, DType::f16);
  EXPECT_EQ(parse(R"("hidden_act": "gelu_new")").activation, graph::Activation::gelu_tanh);
  EXPECT_TRUE(s.ropes.empty());
}

TEST(Encoder, xlm_roberta_counts_positions_from_behind_the_pad) {
  const ModelSpec s =
      parse(R"("max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1)", "xlm-roberta");
  EXPECT_EQ(s.first_position, 2);
  EXPECT_EQ(s.position_rows, 514);
  EXPECT_EQ(s.context, 512);
  EXPECT_EQ(s.token_types, 1);
}

TEST(Encoder, refusals_name_the_member) {
  EXPECT_EQ(
      outcome([] { parse(R"("position_embedding_type": "relative_key")"); }),
      "invalid_argument: config.json: position_embedding_type \"relative_key\" is not supported; supported: absolute");
  EXPECT_EQ(outcome([] { parse(R"("is_decoder": true)"); }),
            "invalid_argument: config.json: bert as a decoder is not supported");
  EXPECT_EQ(outcome([] { parse(R"("num_attention_heads": 5)"); }),
            "corrupt_file: config.json: 5 heads do not share a width of 24 evenly");
  EXPECT_EQ(outcome([] { parse(R"("type_vocab_size": 0)"); }),
            "corrupt_file: config.json: tables of 0 types and 512 positions from 0 on do not serve a context of 512");
}

TEST(Encoder, has_no_head) {
  EXPECT_EQ(outcome([] { forward(parse(), {}); }),
            "invalid_argument: config.json: a model of type bert makes vectors of texts and writes none; hearth embed "
            "uses it");
  const graph::Program p = embedding_forward(parse(), {.pooling = graph::Pooling::cls});
  EXPECT_TRUE(p.kv_groups.empty());
  ASSERT_EQ(p.results.size(), 1u);
  EXPECT_EQ(p.value(p.results[0]).rows, graph::Rows::sequences);
  EXPECT_EQ(p.value(p.results[0]).cols, 24);
}

// Every weight of the forward is there, under each of the names that files give it.
TEST(Encoder, weights_are_found_with_and_without_prefix_and_in_the_first_spelling) {
  std::vector<std::vector<float>> first;
  for (const auto& [prefix, gamma, beta] : {std::tuple("", "weight", "bias"), std::tuple("bert.", "weight", "bias"),
                                            std::tuple("bert.", "gamma", "beta")}) {
    const TempDir dir;
    const auto model = test::open_tiny_encoder({.prefix = prefix, .gamma = gamma, .beta = beta}, dir);
    const graph::Program p = embedding_forward(model->spec(), {});
    std::vector<std::vector<float>> all;
    for (const graph::ValueId id : p.weights) {
      const PackedTensor w = model->weights().get(p.value(id));
      std::vector<float>& values = all.emplace_back(static_cast<size_t>(w.N * w.K));
      for (int64_t n = 0; n < w.N; ++n)
        decode_row(w, n, std::span(values).subspan(static_cast<size_t>(n * w.K), static_cast<size_t>(w.K)));
    }
    EXPECT_EQ(p.weights.size(), 3u + 2 + 2 * 16);
    EXPECT_TRUE(model->weights().surplus().empty());  // the pooler's head is expected
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << prefix << gamma;
  }
}

TEST(Encoder, a_layer_too_few_is_told_at_once) {
  const TempDir dir;
  write_tiny_encoder(TinyEncoder{}, dir);
  std::string config = test::read_bytes(dir.path() / "config.json");
  config.replace(config.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 3");
  dir.write("config.json", config);
  const std::string text = outcome([&] { Model::open(dir.path()); });
  EXPECT_NE(text.find("model.encoder.layer.2.output.LayerNorm is absent, 3 layers are announced"), text.npos) << text;
}

}  // namespace
}  // namespace hearth::model
