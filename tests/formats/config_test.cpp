#include "formats/config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_dir.h"
#include "formats/builders.h"
#include "formats/model_dir.h"

namespace hearth::formats {
namespace {

using test::outcome;

std::optional<QuantTable> table_of(const std::string& text) { return QuantTable::of(parse_config(text, "c"), "c"); }
std::string refusal(const std::string& text) {
  return outcome([&] { table_of(text); });
}

TEST(QuantTable, defaults_and_modules) {
  const auto table = table_of(R"({"quantization": {"group_size": 64, "bits": 4, "mode": "affine", "tool": "optiq 1.2",
      "model.layers.0.self_attn.q_proj": {"bits": 8, "group_size": 32}, "model.layers.0.mlp.gate": {"bits": 8},
      "lm_head": false, "model.embed_tokens": true, "model.layers.1.mlp": {"group_size": 128, "mode": "affine"}},
      "quantization_config": {"bits": 2, "group_size": 32}})");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->defaults(), (QuantEntry{true, 4, 64}));
  EXPECT_EQ(table->lookup("model.layers.0.self_attn.q_proj"), (QuantEntry{true, 8, 32}));
  EXPECT_EQ(table->lookup("model.layers.0.mlp.gate"), (QuantEntry{true, 8, 64}));
  EXPECT_EQ(table->lookup("model.layers.1.mlp"), (QuantEntry{true, 4, 128}));
  EXPECT_EQ(table->lookup("lm_head"), QuantEntry{});
  EXPECT_EQ(table->lookup("model.embed_tokens"), (QuantEntry{true, 4, 64}));
  EXPECT_EQ(table->lookup("model.layers.7.mlp"), (QuantEntry{true, 4, 64}));
  EXPECT_EQ(table->modules().size(), 5u);
}

TEST(QuantTable, places_in_order) {
  EXPECT_FALSE(table_of("{}"));
  EXPECT_FALSE(table_of(R"({"quantization": null})"));
  EXPECT_EQ(table_of(R"({"quantization_config": {"bits": 3, "group_size": 32}})")->defaults().bits, 3);
  EXPECT_EQ(table_of(R"({"text_config": {"quantization": {"bits": 5, "group_size": 32}}})")->defaults().bits, 5);
  EXPECT_EQ(table_of(R"({"text_config": {"quantization": {"bits": 5, "group_size": 32}},
                         "quantization_config": {"bits": 6, "group_size": 32}})")
                ->defaults()
                .bits,
            6);
  const auto modules_only = table_of(R"({"quantization": {"a": {"bits": 8, "group_size": 64}}})");
  EXPECT_EQ(modules_only->lookup("b"), QuantEntry{});
  EXPECT_EQ(modules_only->lookup("a"), (QuantEntry{true, 8, 64}));
}

TEST(QuantTable, refusals_name_the_entry) {
  EXPECT_EQ(refusal(R"({"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}})"),
            "invalid_argument: c: quantization: mode mxfp4 is not supported; supported is affine");
  EXPECT_EQ(refusal(R"({"quantization": {"bits": 4, "group_size": 32, "a.b": {"mode": "nvfp4"}}})"),
            "invalid_argument: c: quantization[a.b]: mode nvfp4 is not supported; supported is affine");
  EXPECT_EQ(refusal(R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})"),
            "invalid_argument: c: quantization_config: quant_method gptq is not supported; supported is affine (MLX)");
  EXPECT_EQ(refusal(R"({"quantization": {"bits": 7}})"),
            "invalid_argument: c: quantization: bits 7 are not supported; supported are 2 3 4 5 6 8");
  EXPECT_EQ(refusal(R"({"quantization": {"bits": 4, "group_size": 48}})"),
            "invalid_argument: c: quantization: group_size 48 is not supported; supported are 32 64 128");
  EXPECT_EQ(refusal(R"({"quantization": {"bits": "4"}})"),
            "corrupt_file: c: quantization.bits: expected an integer, found a string");
  EXPECT_EQ(refusal(R"({"quantization": {"bits": 4.5}})"),
            "corrupt_file: c: quantization.bits: expected an integer, found a number");
  EXPECT_EQ(refusal(R"({"quantization": [4]})"), "corrupt_file: c: quantization: expected an object, found an array");
  EXPECT_EQ(refusal(R"({"quantization": {"mode": 3}})"),
            "corrupt_file: c: quantization.mode: expected a string, found a number");
  EXPECT_EQ(refusal(R"({"quantization": {"a": {"bits": 4}}})"),
            "corrupt_file: c: quantization[a]: neither the entry nor the defaults give bits and group_size");
  EXPECT_EQ(refusal("[]"), "corrupt_file: c: expected an object, found an array");
  EXPECT_EQ(refusal(std::string(kConfigBytesMax + 1, ' ')),
            "corrupt_file: c: 1048577 bytes of JSON, the limit is 1048576");
}

TEST(KvConfig, layers_in_order) {
  const auto layers = parse_kv_config(R"([{"layer_idx": 5, "bits": 8, "group_size": 64},
                                          {"layer_idx": 2, "bits": 4, "group_size": 64, "note": 1}])",
                                      "kv");
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].layer, 2);
  EXPECT_EQ(layers[0].bits, 4);
  EXPECT_EQ(layers[1].layer, 5);
  EXPECT_TRUE(parse_kv_config("[]", "kv").empty());
}

TEST(KvConfig, refusals) {
  const auto refused = [](const char* text) { return outcome([&] { parse_kv_config(text, "kv"); }); };
  EXPECT_EQ(refused("{}"), "corrupt_file: kv: expected an array, found an object");
  EXPECT_EQ(refused("[1]"), "corrupt_file: kv[0]: expected an object, found a number");
  EXPECT_EQ(refused(R"([{"bits": 4, "group_size": 64}])"), "corrupt_file: kv[0]: layer_idx is absent");
  EXPECT_EQ(refused(R"([{"layer_idx": "0", "bits": 4, "group_size": 64}])"),
            "corrupt_file: kv[0].layer_idx: expected an integer, found a string");
  EXPECT_EQ(refused(R"([{"layer_idx": -1, "bits": 4, "group_size": 64}])"),
            "corrupt_file: kv[0]: layer_idx -1 is outside 0 .. 65535");
  EXPECT_EQ(refused(R"([{"layer_idx": 65536, "bits": 4, "group_size": 64}])"),
            "corrupt_file: kv[0]: layer_idx 65536 is outside 0 .. 65535");
  EXPECT_EQ(refused(R"([{"layer_idx": 0, "bits": 3, "group_size": 64}])"),
            "invalid_argument: kv[0]: bits 3 with group_size 64; supported are bits 4 8 with group_size 64");
  EXPECT_EQ(
      refused(R"([{"layer_idx": 1, "bits": 4, "group_size": 64}, {"layer_idx": 1, "bits": 8, "group_size": 64}])"),
      "corrupt_file: kv: layer_idx 1 occurs twice");
}

TEST(ModelDir, reads_what_is_there) {
  const test::TempDir dir;
  const auto write = [&](const char* name, const char* text) { std::ofstream(dir.path() / name) << text; };
  EXPECT_EQ(outcome([&] { ModelDir::open(dir.path()); }),
            "not_found: " + (dir.path() / "config.json").string() + ": open: No such file or directory");
  write("config.json", R"({"model_type": "llama", "quantization": {"bits": 4, "group_size": 64}})");
  ModelDir model = ModelDir::open(dir.path());
  EXPECT_EQ(*model.config.get("model_type")->string(), "llama");
  EXPECT_EQ(model.quantization->defaults().bits, 4);
  EXPECT_FALSE(model.generation_config || model.kv_config || model.tokenizer.tokenizer_json);

  write("generation_config.json", R"({"eos_token_id": [1, 2]})");
  write("kv_config.json", R"([{"layer_idx": 0, "bits": 8, "group_size": 64}])");
  write("tokenizer.json", "{}");
  write("chat_template.jinja", "{{ x }}");
  model = ModelDir::open(dir.path());
  EXPECT_EQ(model.generation_config->get("eos_token_id")->array()->size(), 2u);
  EXPECT_EQ(model.kv_config->size(), 1u);
  EXPECT_EQ(model.tokenizer.tokenizer_json, dir.path() / "tokenizer.json");
  EXPECT_EQ(model.tokenizer.chat_template_jinja, dir.path() / "chat_template.jinja");
  EXPECT_FALSE(model.tokenizer.tokenizer_model);

  write("generation_config.json", "[]");
  EXPECT_EQ(
      outcome([&] { ModelDir::open(dir.path()); }),
      "corrupt_file: " + (dir.path() / "generation_config.json").string() + ": expected an object, found an array");
}

}  // namespace
}  // namespace hearth::formats
