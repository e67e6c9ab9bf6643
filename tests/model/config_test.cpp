// config.json of every family: aliases, defaults, refusals with their exact words.
#include <gtest/gtest.h>

#include <cmath>

#include "model/spec.h"
#include "support/outcome.h"

namespace hearth::model {
namespace {

const std::string kLlama = R"({"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 64,
  "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 300,
  "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 500000)";

// kLlama with further members; a key given again replaces the first.
ModelSpec parse(const std::string& more = "") {
  json::Value config = json::parse(kLlama + "}", "config.json");
  const json::Value extra = json::parse("{" + more + "}", "more");
  for (const auto& [key, value] : *extra.object()) {
    if (value.is_string() && *value.string() == "<absent>") config.object()->erase(key);
    else (*config.object())[key] = value;
  }
  return parse_config(config, "config.json");
}

std::string refusal(const std::string& more) {
  return test::outcome([&] { parse(more); });
}

TEST(Config, llama) {
  const ModelSpec s = parse();
  EXPECT_EQ(s.model_type, "llama");
  EXPECT_EQ(s.L, 3);
  EXPECT_EQ(s.D, 64);
  EXPECT_EQ(s.H, 4);
  EXPECT_EQ(s.Hkv, 2);
  EXPECT_EQ(s.Dh, 16);  // D / H
  EXPECT_EQ(s.F, 96);
  EXPECT_EQ(s.V, 300);
  EXPECT_EQ(s.context, 512);
  EXPECT_FLOAT_EQ(s.eps, 1e-5f);
  EXPECT_EQ(s.order, LayerOrder::pre_norm);
  EXPECT_EQ(s.activation, graph::Activation::silu);
  EXPECT_FLOAT_EQ(s.attention_scale, 0.25f);
  EXPECT_FALSE(s.qkv_bias || s.o_bias || s.mlp_bias || s.qk_norm || s.norm_plus_one || s.tied);
  EXPECT_EQ(s.dtype, DType::bf16);
  ASSERT_EQ(s.layers.size(), 3u);
  EXPECT_EQ(s.layers[0].window, 0);
  ASSERT_EQ(s.ropes.size(), 1u);
  EXPECT_EQ(s.ropes[0].rot, 16);
  EXPECT_EQ(s.ropes[0].pair_stride, 8);
  EXPECT_FLOAT_EQ(s.ropes[0].inv_freq[1], static_cast<float>(std::pow(500000.0, -2.0 / 16)));
}

TEST(Config, null_is_absence) {
  const ModelSpec s = parse(R"("head_dim": null, "rope_scaling": null, "sliding_window": null, "eos_token_id": null)");
  EXPECT_EQ(s.Dh, 16);
  EXPECT_TRUE(s.end_ids.empty());
}

TEST(Config, aliases_and_options) {
  const ModelSpec s = parse(R"("num_key_value_heads": "<absent>", "head_dim": 32, "attention_bias": true,
                            "mlp_bias": true, "tie_word_embeddings": true, "torch_dtype": "float16",
                            "hidden_act": "relu", "hidden_activation": "gelu", "eos_token_id": [5, 6])");
  EXPECT_EQ(s.Hkv, 4);
  EXPECT_EQ(s.Dh, 32);
  EXPECT_TRUE(s.qkv_bias && s.o_bias && s.mlp_bias && s.tied);
  EXPECT_EQ(s.dtype, DType::f16);
  EXPECT_EQ(s.activation, graph::Activation::gelu);  // hidden_activation comes first
  EXPECT_EQ(s.end_ids, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(parse(R"("eos_token_id": 7, "dtype": "float32")").end_ids, std::vector<int32_t>{7});
  EXPECT_EQ(parse(R"("dtype": "float32")").dtype, DType::f32);
  EXPECT_EQ(parse(R"("hidden_act": "gelu_pytorch_tanh")").activation, graph::Activation::gelu_tanh);
}

TEST(Config, fields_may_be_nested_in_text_config) {
  const json::Value config =
      json::parse(R"({"model_type": "llama", "eos_token_id": 9, "text_config": )" + kLlama + "}}", "c");
  const ModelSpec s = parse_config(config, "c");
  EXPECT_EQ(s.L, 3);
  EXPECT_EQ(s.end_ids, std::vector<int32_t>{9});
}

TEST(Config, the_base_may_stand_in_rope_parameters) {
  const auto base = [](const std::string& more) {
    return std::pow(parse(R"("rope_theta": "<absent>", )" + more).ropes[0].inv_freq[1], -8.0);  // ^(-16 / 2)
  };
  EXPECT_NEAR(base(R"("rope_parameters": {"rope_type": "default", "rope_theta": 5000000})") / 5e6, 1, 1e-5);
  // MiniCPM5 keys it by layer type.
  EXPECT_NEAR(base(R"("rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 5000000}})") / 5e6,
              1, 1e-5);
}

TEST(Config, windows_by_layer_type) {
  const ModelSpec s = parse(R"("sliding_window": 128,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"])");
  EXPECT_EQ(s.layers[0].window, 0);
  EXPECT_EQ(s.layers[1].window, 128);
  EXPECT_EQ(parse(R"("sliding_window": 128)").layers[1].window, 0);  // llama without types: none
  const ModelSpec mistral = parse(R"("model_type": "mistral", "sliding_window": 128)");
  for (const LayerSpec& layer : mistral.layers) EXPECT_EQ(layer.window, 128);
}

TEST(Config, qwen2_has_biases_on_q_k_v_alone) {
  const ModelSpec s = parse(R"("model_type": "qwen2", "sliding_window": 128, "use_sliding_window": false)");
  EXPECT_TRUE(s.qkv_bias);
  EXPECT_FALSE(s.o_bias || s.mlp_bias);
  EXPECT_EQ(s.layers[2].window, 0);
  const ModelSpec windowed =
      parse(R"("model_type": "qwen2", "sliding_window": 128, "use_sliding_window": true, "max_window_layers": 2)");
  EXPECT_EQ(windowed.layers[1].window, 0);
  EXPECT_EQ(windowed.layers[2].window, 128);
}

TEST(Config, qwen3_norms_q_and_k) {
  const ModelSpec s = parse(R"("model_type": "qwen3", "head_dim": 32)");
  EXPECT_TRUE(s.qk_norm);
  EXPECT_FALSE(s.qkv_bias || s.norm_plus_one);
  EXPECT_EQ(s.Dh, 32);
}

TEST(Config, gemma3) {
  const ModelSpec s = parse(R"("model_type": "gemma3_text", "num_hidden_layers": 7, "head_dim": 32,
    "query_pre_attn_scalar": 64, "rope_theta": 1000000, "rope_local_base_freq": 20000, "sliding_window": 256,
    "hidden_activation": "gelu_pytorch_tanh", "rope_scaling": {"rope_type": "linear", "factor": 8},
    "attn_logit_softcapping": null, "final_logit_softcapping": 30)");
  EXPECT_EQ(s.order, LayerOrder::sandwich);
  EXPECT_TRUE(s.qk_norm && s.norm_plus_one && s.tied);
  EXPECT_FLOAT_EQ(s.attention_scale, 0.125f);
  EXPECT_EQ(s.attention_cap, 0);
  EXPECT_EQ(s.logit_cap, 30);
  EXPECT_EQ(s.embed_scale, 8);
  EXPECT_EQ(s.activation, graph::Activation::gelu_tanh);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(s.layers[i].window, i == 5 ? 0 : 256) << i;
    EXPECT_EQ(s.layers[i].rope, i == 5 ? 0 : 1) << i;
  }
  ASSERT_EQ(s.ropes.size(), 2u);
  EXPECT_FLOAT_EQ(s.ropes[0].inv_freq[0], 1 / 8.0f);  // the scaling belongs to the global layers
  EXPECT_FLOAT_EQ(s.ropes[1].inv_freq[0], 1);
  EXPECT_FLOAT_EQ(s.ropes[1].inv_freq[1], static_cast<float>(std::pow(20000.0, -2.0 / 32)));
}

TEST(Config, gemma3_defaults_of_the_family) {
  const ModelSpec s = parse(R"("model_type": "gemma3", "hidden_size": 640, "rope_theta": "<absent>",
                            "num_hidden_layers": 6, "sliding_window_pattern": 3)");
  EXPECT_EQ(s.Dh, 256);
  EXPECT_EQ(s.layers[0].window, 512);
  EXPECT_EQ(s.layers[2].window, 0);
  EXPECT_EQ(s.embed_scale, 25.25f);  // sqrt(640) = 25.298 rounded to bf16
  EXPECT_FLOAT_EQ(s.ropes[0].inv_freq[1], static_cast<float>(std::pow(1e6, -2.0 / 256)));
  EXPECT_FLOAT_EQ(s.ropes[1].inv_freq[1], static_cast<float>(std::pow(1e4, -2.0 / 256)));
  // Newer files key both bases by layer type.
  const ModelSpec keyed =
      parse(R"("model_type": "gemma3_text", "head_dim": 32, "rope_theta": "<absent>", "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 4, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 30000}
      })");
  EXPECT_FLOAT_EQ(keyed.ropes[0].inv_freq[0], 0.25f);
  EXPECT_FLOAT_EQ(keyed.ropes[1].inv_freq[1], static_cast<float>(std::pow(30000.0, -2.0 / 32)));
}

// The hub's 4B: what the family's class has as defaults is not in the file.
TEST(Config, gemma3_files_may_leave_heads_and_vocabulary_out) {
  const json::Value config = json::parse(R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560,
    "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}})",
                                         "c");
  const ModelSpec s = parse_config(config, "c");
  EXPECT_EQ(s.H, 8);
  EXPECT_EQ(s.Hkv, 4);
  EXPECT_EQ(s.Dh, 256);
  EXPECT_EQ(s.V, 262208);
  EXPECT_EQ(s.context, 131072);
  EXPECT_EQ(s.layers[4].window, 1024);
  EXPECT_EQ(s.layers[5].window, 0);
  EXPECT_FLOAT_EQ(s.ropes[0].inv_freq[0], 0.125f);
}

TEST(Config, refuses_what_is_not_built_with_the_list) {
  EXPECT_EQ(refusal(R"("model_type": "mamba")"),
            "invalid_argument: config.json: model_type \"mamba\" is not supported; supported: llama, mistral, qwen2, "
            "qwen3, gemma3, gemma3_text, bert, xlm-roberta");
  EXPECT_EQ(refusal(R"("model_type": "<absent>")"),
            "invalid_argument: config.json: model_type \"\" is not supported; supported: llama, mistral, qwen2, qwen3, "
            "gemma3, gemma3_text, bert, xlm-roberta");
  EXPECT_EQ(refusal(R"("hidden_act": "mish")"),
            "invalid_argument: config.json: activation \"mish\" is unknown; supported: silu, gelu, gelu_pytorch_tanh, "
            "relu, relu2");
  EXPECT_EQ(refusal(R"("layer_types": ["full_attention", "linear_attention", "full_attention"])"),
            "invalid_argument: config.json: layer_types[1] \"linear_attention\" is unknown; supported: full_attention, "
            "sliding_attention");
  EXPECT_EQ(refusal(R"("rope_scaling": {"type": "spiral"})"),
            "invalid_argument: config.json: rope_type \"spiral\" is unknown; supported: default, linear, dynamic, "
            "llama3, yarn, longrope, proportional, mrope");
}

TEST(Config, refuses_absent_and_impossible_numbers) {
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size", "rope_theta"})
    EXPECT_EQ(refusal(fmt::format("\"{}\": \"<absent>\"", key)),
              fmt::format("corrupt_file: config.json: {} is absent", key));
  EXPECT_EQ(refusal(R"("hidden_size": "wide")"),
            "corrupt_file: config.json: hidden_size: expected an integer, found a string");
  EXPECT_EQ(refusal(R"("num_attention_heads": 0)"), "corrupt_file: config.json: num_attention_heads is 0");
  EXPECT_EQ(refusal(R"("num_key_value_heads": 3)"),
            "corrupt_file: config.json: 4 query heads do not share 3 KV heads evenly");
  EXPECT_EQ(refusal(R"("num_key_value_heads": 0)"), "corrupt_file: config.json: KV heads is 0, expected 1 to 65536");
  EXPECT_EQ(refusal(R"("vocab_size": -1)"), "corrupt_file: config.json: vocabulary is -1, expected 1 to 16777216");
  EXPECT_EQ(refusal(R"("rms_norm_eps": 2)"), "corrupt_file: config.json: norm epsilon is 2");
  EXPECT_EQ(refusal(R"("layer_types": ["full_attention"])"),
            "corrupt_file: config.json: layer_types has 1 entries for 3 layers");
  EXPECT_EQ(refusal(R"("rope_theta": 0)"),
            "corrupt_file: config.json: the base of rotary embeddings (rope_theta) is 0, it must be positive");
  EXPECT_EQ(
      refusal(R"("model_type": "gemma3", "rope_local_base_freq": 0)"),
      "corrupt_file: config.json: the base of rotary embeddings (rope_local_base_freq) is 0, it must be positive");
  EXPECT_EQ(refusal(R"("partial_rotary_factor": 1.5)"),
            "corrupt_file: config.json: partial_rotary_factor is 1.5, expected a share up to 1");
  EXPECT_EQ(refusal(R"("head_dim": 5)"),
            "corrupt_file: config.json: 5 of 5 head columns turn, an even number up to 5 is needed");
  EXPECT_EQ(refusal(R"("rope_scaling": {"rope_type": "linear"})"),
            "corrupt_file: config.json: rope_type linear needs factor");
  EXPECT_EQ(refusal(R"("model_type": "gemma3", "sliding_window_pattern": 0)"),
            "corrupt_file: config.json: sliding_window_pattern is 0");
}

TEST(Config, end_ids_are_a_number_or_a_list_and_are_not_cut_to_32_bits) {
  EXPECT_EQ(parse(R"("eos_token_id": [2, 7])").end_ids, (std::vector<int32_t>{2, 7}));
  EXPECT_EQ(parse(R"("eos_token_id": 2)").end_ids, (std::vector<int32_t>{2}));
  EXPECT_EQ(refusal(R"("eos_token_id": 4294967298)"),
            "corrupt_file: config.json: eos_token_id: 4294967298 is no token id");
}

// Each is possible alone; bytes of the KV cache would wrap.
TEST(Config, extents_whose_cache_has_no_size_are_refused) {
  EXPECT_EQ(refusal(R"("num_hidden_layers": 4096, "num_attention_heads": 65536, "num_key_value_heads": 65536,
                       "head_dim": 16384)"),
            "corrupt_file: config.json: 4096 layers of 65536 KV heads of 16384 are more than 268435456 columns");
}

TEST(Config, a_negative_window_is_refused) {
  EXPECT_EQ(refusal(R"("model_type": "mistral", "sliding_window": -8)"),
            "corrupt_file: config.json: the window of layer 0 is -8");
}

// Numbers are checked before anything of their size is made.
TEST(Config, a_huge_layer_count_allocates_nothing) {
  for (const char* type : {"llama", "qwen2", "gemma3"})
    EXPECT_EQ(refusal(fmt::format(R"("model_type": "{}", "num_hidden_layers": 4000000000000000)", type)),
              "corrupt_file: config.json: layers is 4000000000000000, expected 1 to 4096");
}

}  // namespace
}  // namespace hearth::model
