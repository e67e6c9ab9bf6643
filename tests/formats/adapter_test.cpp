// Adapters of both kinds of files, and every way in which one is refused.
#include "formats/adapter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/builders.h"
#include "support/adapter_files.h"

namespace hearth::formats {
namespace {

using test::outcome;

const std::vector<AdapterLinear> kBase = {{"model.layers.0.self_attn.q_proj", 6, 4},
                                          {"model.layers.0.mlp.down_proj", 4, 8},
                                          {"model.layers.10.self_attn.q_proj", 6, 4}};
const std::string kMlx = R"({"lora_parameters": {"rank": 2, "scale": 2.5}})";
const std::string kPeft = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 5, "bias": "none", "revision": null})";

Adapter parsed(const std::string& config, const std::string& weights) {
  return parse_adapter({.config = config, .weights = test::as_bytes(weights), .config_name = "c", .weights_name = "w"},
                       kBase);
}
std::string refusal(const std::string& config, const std::string& weights) {
  return outcome([&] { parsed(config, weights); });
}

Adapter sample(int64_t R = 2, float scale = 2.5f) { return test::random_adapter(kBase, {.R = R, .scale = scale}); }

void expect_equal(const Adapter& got, const Adapter& want) {
  ASSERT_EQ(got.linears.size(), want.linears.size());
  for (size_t i = 0; i < got.linears.size(); ++i) {
    const AdapterFactors &g = got.linears[i], &w = want.linears[i];
    EXPECT_EQ(g.module, w.module);
    EXPECT_EQ(std::tuple(g.K, g.R, g.N, g.scale), std::tuple(w.K, w.R, w.N, w.scale));
    EXPECT_EQ(g.a, w.a);
    EXPECT_EQ(g.b, w.b);
  }
}

TEST(Adapter, both_kinds_of_files_give_the_same_factors) {
  const Adapter want = sample();
  expect_equal(parsed(kMlx, test::native_weights(want)), want);
  expect_equal(parsed(kPeft, test::peft_weights(want)), want);
  EXPECT_EQ(want.rank_max(), 2);
  EXPECT_EQ(want.values(), 2 * (10 + 12 + 10));
}

TEST(Adapter, prefixes_of_other_loaders_are_taken_off) {
  const Adapter want = sample();
  for (const char* prefix : {"", "model.", "language_model.", "language_model.model.", "model.language_model.",
                             "base_model.model.model.", "base_model.model.language_model.model."})
    expect_equal(parsed(kMlx, test::native_weights(want, DType::f32, prefix)), want);
}

TEST(Adapter, half_precision_is_widened_exactly) {
  Adapter want = sample();
  for (const DType type : {DType::bf16, DType::f16}) {
    Adapter rounded = want;
    for (AdapterFactors& f : rounded.linears)
      for (std::vector<float>* list : {&f.a, &f.b})
        for (float& v : *list) v = round_to(type, v);
    expect_equal(parsed(kMlx, test::native_weights(want, type)), rounded);
    expect_equal(parsed(kPeft, test::peft_weights(want, type)), rounded);
  }
}

TEST(Adapter, the_scale_is_the_one_that_was_trained_with) {
  const auto scale = [](const std::string& config, int64_t R = 4) {
    return parsed(config, test::native_weights(sample(R))).linears[0].scale;
  };
  EXPECT_EQ(scale(R"({"lora_parameters": {"scale": 0.5}})"), 0.5f);
  EXPECT_EQ(scale(R"({"lora_parameters": {"rank": 4}})"), 20.0f);
  EXPECT_EQ(scale(R"({"lora_parameters": {"scale": 0.5}, "lora_alpha": 16, "r": 4})"), 0.5f);
  EXPECT_EQ(scale(R"({"lora_alpha": 16, "r": 4})"), 4.0f);
  EXPECT_EQ(scale(R"({"lora_alpha": 16, "r": 4, "use_rslora": true})"), 8.0f);
  EXPECT_EQ(scale(R"({"lora_parameters": {"scale": 16}, "rs_lora": true})", 16), 4.0f);

  // Ranks of their own, by pattern.
  Adapter mixed = test::random_adapter(kBase, {.R = 4, .only = "q_proj"});
  mixed.linears.push_back(test::random_adapter(kBase, {.R = 3, .only = "down_proj"}).linears[0]);
  const Adapter got = parsed(
      R"({"lora_alpha": 6, "r": 3, "rank_pattern": {"q_proj": 4}, "alpha_pattern": {"layers.0.self_attn.q_proj": 16}})",
      test::native_weights(mixed));
  EXPECT_EQ(got.linears[0].scale, 4.0f);
  EXPECT_EQ(got.linears[1].scale, 2.0f);
  EXPECT_EQ(got.linears[2].scale, 1.5f);
}

TEST(Adapter, patterns_name_whole_parts_of_a_path) {
  const std::string config =
      R"({"lora_alpha": 8, "r": 4, "alpha_pattern": {"layers.0.self_attn.q_proj": 4, "proj": 100}})";
  const Adapter adapter = parsed(config, test::native_weights(sample(4)));
  EXPECT_EQ(adapter.linears[0].scale, 1.0f);
  EXPECT_EQ(adapter.linears[1].scale, 2.0f);
  EXPECT_EQ(adapter.linears[2].scale, 2.0f);
}

TEST(Adapter, the_base_is_known_by_repository_and_commit) {
  const std::string config = R"({"base_model_name_or_path": "org/m", "revision": "abc", "r": 2, "lora_alpha": 2})";
  Adapter a = parsed(config, test::native_weights(sample()));
  a.id = "style";
  EXPECT_EQ(a.base, "org/m");
  EXPECT_EQ(base_mismatch(a, "org/m", "abc"), "");
  EXPECT_EQ(base_mismatch(a, "", ""), "");
  EXPECT_EQ(base_mismatch(a, "org/other", "abc"), "adapter style was trained on org/m, the model is org/other");
  EXPECT_EQ(base_mismatch(a, "org/m", "abd"),
            "adapter style was trained on revision abc of org/m, the model is revision abd");
  a.base = "/home/somebody/m";
  EXPECT_EQ(base_mismatch(a, "org/other", "abc"), "");
}

TEST(Adapter, ids_have_no_separators) {
  check_adapter_id("my style 2.0");
  for (const char* id : {"", "none", "..", "a+b", "a,b", "a/b", "a:b", "a\nb"})
    EXPECT_NE(outcome([&] { check_adapter_id(id); }), "accepted") << id;
}

TEST(Adapter, configs_that_need_more_than_two_factors_are_refused_by_name) {
  const std::string weights = test::native_weights(sample());
  const std::string tail = ", which is not supported; supported are plain LoRA adapters";
  const std::pair<const char*, const char*> cases[] = {
      {R"("fine_tune_type": "dora")", "fine_tune_type is \"dora\""},
      {R"("fine_tune_type": "full")", "fine_tune_type is \"full\""},
      {R"("peft_type": "IA3")", "peft_type is \"IA3\""},
      {R"("bias": "all")", "bias is \"all\""},
      {R"("use_dora": true)", "use_dora is true"},
      {R"("fan_in_fan_out": true)", "fan_in_fan_out is true"},
      {R"("modules_to_save": ["lm_head"])", "modules_to_save is [\"lm_head\"]"},
      {R"("layer_replication": [[0, 2]])", "layer_replication is [[0, 2]]"},
      {R"("init_lora_weights": "pissa_niter_4")", "init_lora_weights is \"pissa_niter_4\""},
  };
  for (const auto& [field, said] : cases)
    EXPECT_EQ(refusal(fmt::format(R"({{"r": 2, "lora_alpha": 2, {}}})", field), weights),
              fmt::format("invalid_argument: c: {}{}", said, tail));
  EXPECT_EQ(refusal(R"({"r": 2, "lora_alpha": 2, "use_dora": false, "bias": "none", "modules_to_save": null,
                       "fan_in_fan_out": false, "init_lora_weights": true, "layers_to_transform": null})",
                    weights),
            "accepted");
}

TEST(Adapter, bad_configs) {
  const std::string weights = test::native_weights(sample());
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "corrupt_file: c: neither lora_parameters nor lora_alpha with r gives the scale"},
      {R"({"lora_alpha": 4})", "corrupt_file: c: neither lora_parameters nor lora_alpha with r gives the scale"},
      {R"({"lora_parameters": []})", "corrupt_file: c: lora_parameters: expected an object, found an array"},
      {R"({"lora_alpha": "x", "r": 2})", "corrupt_file: c: lora_alpha: expected a number, found a string"},
      {R"({"lora_alpha": 2, "r": 0})", "corrupt_file: c: r is 0"},
      {R"({"lora_alpha": 2, "r": 3})",
       "corrupt_file: c: rank 3 for model.layers.0.self_attn.q_proj, whose factors have rank 2"},
      {R"({"lora_alpha": 2, "r": 2, "rank_pattern": {".*q_proj": 4}})",
       "invalid_argument: c: rank_pattern: \".*q_proj\" is no module name; regular expressions are not supported"},
      {R"({"lora_parameters": {"scale": 1e300}})",
       "corrupt_file: c: the scale of model.layers.0.self_attn.q_proj is inf"},
  };
  for (const auto& [config, want] : cases) EXPECT_EQ(refusal(config, weights), want);
}

TEST(Adapter, bad_weights) {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    float value = 1;
    DType type = DType::f32;
  };
  const auto file = [](const std::vector<Tensor>& tensors) {
    test::SafetensorsFile out;
    for (const Tensor& t : tensors) {
      int64_t n = 1;
      for (const int64_t d : t.shape) n *= d;
      std::vector<float> values(static_cast<size_t>(n), 0.5f);
      values.back() = t.value;
      out.add(t.name, t.type, t.shape, values);
    }
    return out.bytes();
  };
  const std::string q = "model.layers.0.self_attn.q_proj";
  struct Bad {
    std::vector<Tensor> tensors;
    std::string error;
  };
  const std::vector<Bad> cases = {
      {{}, "corrupt_file: w: no factors, an adapter has lora_a and lora_b"},
      {{{q + ".lora_a", {4, 2}}}, "corrupt_file: w: " + q + ".lora_a has no second factor"},
      {{{q + ".lora_b", {2, 6}}}, "corrupt_file: w: " + q + ".lora_b has no first factor"},
      {{{q + ".lora_a", {4, 2}}, {q + ".lora_b", {3, 6}}},
       "corrupt_file: w: " + q + ".lora_a has rank 2, " + q + ".lora_b has rank 3"},
      {{{q + ".lora_a", {5, 2}}, {q + ".lora_b", {2, 6}}},
       "invalid_argument: w: " + q + ".lora_a is [5, 2], " + q + " [6, 4] of the model needs [4, R]"},
      {{{q + ".lora_a", {4, 2}}, {q + ".lora_b", {2, 4}}},
       "invalid_argument: w: " + q + ".lora_b is [2, 4], " + q + " [6, 4] of the model needs [R, 6]"},
      {{{q + ".lora_A.weight", {4, 2}}, {q + ".lora_B.weight", {2, 6}}},
       "invalid_argument: w: " + q + ".lora_A.weight is [4, 2], " + q + " [6, 4] of the model needs [R, 4]"},
      {{{q + ".lora_A.weight", {2, 4}}, {q + ".lora_B.weight", {2, 6}}},
       "invalid_argument: w: " + q + ".lora_B.weight is [2, 6], " + q + " [6, 4] of the model needs [6, R]"},
      {{{q + ".lora_a", {4, 1, 2}}, {q + ".lora_b", {2, 6}}},
       "invalid_argument: w: " + q + ".lora_a is [4, 1, 2], " + q + " [6, 4] of the model needs [4, R]"},
      {{{q + ".lora_a", {4, 257}}, {q + ".lora_b", {257, 6}}},
       "invalid_argument: w: " + q + ".lora_a has rank 257, supported are 1 to 256"},
      {{{q + ".lora_a", {4, 2}, NAN}, {q + ".lora_b", {2, 6}}}, "corrupt_file: w: value 7 of " + q + ".lora_a is nan"},
      {{{q + ".lora_a", {4, 2}}, {q + ".lora_b", {2, 6}, INFINITY, DType::bf16}},
       "corrupt_file: w: value 11 of " + q + ".lora_b is inf"},
      {{{q + ".lora_a", {4, 2}}, {"vision_tower." + q + ".lora_A.weight", {2, 4}}, {q + ".lora_b", {2, 6}}},
       "invalid_argument: w: tensor vision_tower." + q + ".lora_A.weight is for a linear that the model does not have"},
      {{{q + ".lora_a", {4, 2}}, {"layers.0.self_attn.q_proj.lora_A.weight", {2, 4}}, {q + ".lora_b", {2, 6}}},
       "corrupt_file: w: " + q + ".lora_a and layers.0.self_attn.q_proj.lora_A.weight are the same factor"},
      {{{"model.layers.9.self_attn.q_proj.lora_a", {4, 2}}},
       "invalid_argument: w: tensor model.layers.9.self_attn.q_proj.lora_a is for a linear that the model does not "
       "have"},
      {{{"lm_head.lora_a", {4, 2}}},
       "invalid_argument: w: tensor lm_head.lora_a is for a linear that the model does not have"},
      {{{q + ".m", {6}}}, "invalid_argument: w: tensor " + q + ".m: DoRA is not supported"},
      {{{q + ".lora_magnitude_vector.weight", {6}}},
       "invalid_argument: w: tensor " + q + ".lora_magnitude_vector.weight: DoRA is not supported"},
      {{{"model.embed_tokens.lora_embedding_A", {2, 6}}},
       "invalid_argument: w: tensor model.embed_tokens.lora_embedding_A: adapted embeddings are not supported"},
      {{{"model.norm.weight", {6}}}, "invalid_argument: w: tensor model.norm.weight: it is no factor of a linear"},
  };
  for (const Bad& bad : cases) EXPECT_EQ(refusal(kMlx, file(bad.tensors)), bad.error);

  test::SafetensorsFile wide;
  const std::vector<std::byte> bytes(8 * 8);
  wide.add(q + ".lora_a", "F64", std::vector<int64_t>{4, 2}, bytes);
  wide.add(q + ".lora_b", DType::f32, {2, 6}, std::vector<float>(12));
  EXPECT_EQ(refusal(kMlx, wide.bytes()),
            "invalid_argument: w: " + q + ".lora_a has dtype F64; supported are F32 F16 BF16");
  EXPECT_EQ(refusal(kMlx, test::native_weights(sample()).substr(0, 300)).substr(0, 13), "corrupt_file:");
}

TEST(Adapter, a_folder_is_read_by_its_files) {
  const test::TempDir dir;
  const Adapter want = sample();
  for (const auto write : {test::write_native, test::write_peft}) {
    const std::filesystem::path path = write(want, dir);
    const Adapter got = read_adapter(path, kBase);
    EXPECT_EQ(got.id, "style");
    expect_equal(got, want);
    std::filesystem::remove_all(path);
  }
  EXPECT_EQ(outcome([&] { read_adapter(dir.path() / "gone", kBase); }),
            "not_found: " + (dir.path() / "gone").string() + ": no such folder");
  const std::filesystem::path bare = dir.write("bare/adapter_config.json", kMlx).parent_path();
  EXPECT_EQ(outcome([&] { read_adapter(bare, kBase); }),
            "not_found: " + bare.string() + ": no adapter there, adapters.safetensors is absent");
  const std::filesystem::path plus = dir.write("a+b/adapter_config.json", kMlx).parent_path();
  EXPECT_EQ(outcome([&] { read_adapter(plus, kBase); }),
            "invalid_argument: adapter \"a+b\": ids have no + , / : and no control characters");
}

}  // namespace
}  // namespace hearth::formats
