// Weight tables of model folders: name prefixes, affine modules, norms with the meaning 1 + w; opening a folder.
#include <gtest/gtest.h>

#include <map>

#include "model/forward.h"
#include "model/model.h"
#include "support/outcome.h"
#include "support/safetensors_file.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"
#include "tensor/affine_quantizer.h"

namespace hearth::model {
namespace {

using test::outcome;
using test::SafetensorsFile;
using test::TempDir;

std::string config(const std::string& type, const std::string& more = "") {
  return fmt::format(
      R"({{"model_type": "{}", "num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 1, "num_key_value_heads": 1,
    "head_dim": 64, "intermediate_size": 64, "vocab_size": 4, "rope_theta": 10000{}}})",
      type, more);
}

graph::ValueInfo weight(std::string name, int64_t N, int64_t K) {
  return {.role = graph::Role::weight, .rows = graph::Rows::fixed, .rows_fixed = N, .cols = K, .name = std::move(name)};
}

std::vector<float> ramp(int64_t count, float step) {
  std::vector<float> v(static_cast<size_t>(count));
  for (size_t i = 0; i < v.size(); ++i) v[i] = step * static_cast<float>(i);
  return v;
}

std::vector<float> values(const PackedTensor& t) {
  std::vector<float> out(static_cast<size_t>(t.N * t.K));
  for (int64_t n = 0; n < t.N; ++n)
    decode_row(t, n, std::span(out).subspan(static_cast<size_t>(n * t.K), static_cast<size_t>(t.K)));
  return out;
}

std::unique_ptr<Model> open(const TempDir& dir, const std::string& config_json, const SafetensorsFile& file) {
  dir.write("config.json", config_json);
  dir.write("model.safetensors", file.bytes());
  return Model::open(dir.path());
}

TEST(SafetensorsWeights, every_prefix_is_found_and_the_plain_one_first) {
  for (const std::string prefix : {"model.", "", "language_model.", "language_model.model.", "model.language_model."}) {
    TempDir dir;
    SafetensorsFile file;
    file.add(prefix + "norm.weight", DType::f32, {64}, ramp(64, 1));
    const auto model = open(dir, config("llama"), file);
    EXPECT_TRUE(model->weights().has("model.norm")) << prefix;
    EXPECT_EQ(values(model->weights().get(weight("model.norm", 1, 64))), ramp(64, 1)) << prefix;
    EXPECT_TRUE(model->spec().tied);  // no head in the file
  }
  TempDir dir;
  SafetensorsFile file;
  file.add("language_model.model.norm.weight", DType::f32, {64}, ramp(64, 2));
  file.add("model.norm.weight", DType::f32, {64}, ramp(64, 1));
  file.add("language_model.lm_head.weight", DType::f32, {4, 64}, ramp(256, 1));
  const auto model = open(dir, config("llama"), file);
  EXPECT_EQ(values(model->weights().get(weight("model.norm", 1, 64))), ramp(64, 1));
  EXPECT_FALSE(model->spec().tied);
}

TEST(SafetensorsWeights, norms_hold_one_plus_w_rounded_to_their_type) {
  TempDir dir;
  SafetensorsFile file;
  const std::vector<float> w(64, 0.0048828125f);  // 1 + w lies between 1 and 1 + 2^-7 in bf16
  file.add("model.norm.weight", DType::bf16, {64}, w);
  file.add("model.layers.0.self_attn.q_norm.weight", DType::f32, {64}, w);
  file.add("model.layers.0.mlp.up_proj.weight", DType::f32, {64, 64}, ramp(4096, 1));
  const auto model = open(dir, config("gemma3_text"), file);
  EXPECT_EQ(values(model->weights().get(weight("model.norm", 1, 64))), std::vector<float>(64, 1.0078125f));
  EXPECT_EQ(values(model->weights().get(weight("model.layers.0.self_attn.q_norm", 1, 64))),
            std::vector<float>(64, 1.0048828125f));
  EXPECT_EQ(values(model->weights().get(weight("model.layers.0.mlp.up_proj", 64, 64))), ramp(4096, 1));
}

AffineTensor quantized(int bits, int group) {
  return quantize_affine(ramp(2 * 128, 0.25f), 2, 128, {Codec::affine, bits, group, DType::bf16});
}

void add(SafetensorsFile& file, const std::string& module, const AffineTensor& t) {
  const std::vector<int64_t> words = {t.N, t.K * t.format.bits / 32}, groups = {t.N, t.K / t.format.group};
  file.add(module + ".weight", "U32", words, t.data);
  file.add(module + ".scales", "BF16", groups, t.scales);
  file.add(module + ".biases", "BF16", groups, t.biases);
}

TEST(SafetensorsWeights, affine_modules_have_the_width_of_their_entry) {
  TempDir dir;
  SafetensorsFile file;
  const AffineTensor four = quantized(4, 64), eight = quantized(8, 32), six = quantized(6, 64);
  add(file, "model.layers.0.mlp.up_proj", four);
  add(file, "model.layers.0.mlp.gate_proj", eight);
  add(file, "model.layers.0.mlp.down_proj", six);
  // The table's spelling of a module may carry another prefix than the file's.
  const auto model = open(dir, config("llama", R"(, "quantization": {"bits": 4, "group_size": 64,
      "model.layers.0.mlp.gate_proj": {"bits": 8, "group_size": 32},
      "language_model.model.layers.0.mlp.down_proj": {"bits": 6, "group_size": 64}})"),
                          file);
  const auto got = [&](const char* name) { return model->weights().get(weight(name, 2, 128)); };
  EXPECT_EQ(values(got("model.layers.0.mlp.up_proj")), values(four.view()));
  EXPECT_EQ(values(got("model.layers.0.mlp.gate_proj")), values(eight.view()));
  EXPECT_EQ(values(got("model.layers.0.mlp.down_proj")), values(six.view()));
  EXPECT_EQ(name_of(got("model.layers.0.mlp.gate_proj").format), "affine8_g32_bf16");
  // Listings look modules up by the same rule.
  std::map<std::string, std::string> listed;
  for (const ListedTensor& t : model->tensors())
    listed[t.name] = fmt::format("{} {} {}", t.type, t.shape[0], t.shape[1]);
  EXPECT_EQ(listed.at("model.layers.0.mlp.gate_proj.weight"), "affine8_g32_bf16 2 128");
  EXPECT_EQ(listed.at("model.layers.0.mlp.down_proj.weight"), "affine6_g64_bf16 2 128");
}

TEST(SafetensorsWeights, refuses_affine_modules_that_do_not_fit_their_entry) {
  const auto refusal = [](const std::string& more, int64_t K = 128, bool biases = true) {
    TempDir dir;
    SafetensorsFile file;
    const AffineTensor t = quantized(4, 64);
    if (biases) {
      add(file, "model.layers.0.mlp.up_proj", t);
    } else {
      file.add("model.layers.0.mlp.up_proj.weight", "U32", std::vector<int64_t>{2, 16}, t.data);
      file.add("model.layers.0.mlp.up_proj.scales", "BF16", std::vector<int64_t>{2, 2}, t.scales);
    }
    const auto model = open(dir, config("llama", more), file);
    std::string text = outcome([&] { model->weights().get(weight("model.layers.0.mlp.up_proj", 2, K)); });
    const std::string folder = dir.path().string() + "/";
    if (const size_t at = text.find(folder); at != std::string::npos) text.erase(at, folder.size());
    return text;
  };
  const std::string table = R"(, "quantization": {"bits": 4, "group_size": 64})";
  EXPECT_EQ(refusal(table), "accepted");
  EXPECT_EQ(refusal(""),
            "corrupt_file: config.json: model.layers.0.mlp.up_proj has scales, but config.json has no "
            "quantization table");
  EXPECT_EQ(refusal(R"(, "quantization": {"bits": 8, "group_size": 64})"),
            "corrupt_file: config.json: model.layers.0.mlp.up_proj is [2, 16] words with scales [2, 2], the table says "
            "8 bits in groups of 64");
  EXPECT_EQ(refusal(table, 256),
            "corrupt_file: config.json: model.layers.0.mlp.up_proj is [2, 128], the config says [2, 256]");
  EXPECT_EQ(refusal(table, 128, false),
            "corrupt_file: config.json: tensor model.layers.0.mlp.up_proj.biases is absent");
}

TEST(SafetensorsWeights, names_absent_tensors_and_types_that_are_no_weights) {
  TempDir dir;
  SafetensorsFile file;
  file.add("model.norm.weight", "I32", std::vector<int64_t>{64}, std::vector<std::byte>(256));
  file.add("model.layers.0.self_attn.rotary_emb.inv_freq", DType::f32, {1}, ramp(1, 1));
  file.add("spare.weight", DType::f32, {1}, ramp(1, 1));
  const auto model = open(dir, config("llama"), file);
  const std::string where = (dir.path() / "config.json").string();
  EXPECT_EQ(outcome([&] { model->weights().get(weight("model.layers.0.mlp.up_proj", 64, 64)); }),
            "corrupt_file: " + where + ": tensor model.layers.0.mlp.up_proj.weight is absent");
  EXPECT_EQ(
      outcome([&] { model->weights().get(weight("model.norm", 1, 64)); }),
      "invalid_argument: " + where + ": model.norm.weight is I32; a weight is F32, F16, BF16 or quantized (affine)");
  EXPECT_EQ(model->weights().surplus(), std::vector<std::string>{"spare.weight"});
}

TEST(SafetensorsWeights, tensors_of_any_rank_are_told_by_their_shape) {
  TempDir dir;
  SafetensorsFile file;
  file.add("model.norm.weight", DType::bf16, {2, 1, 4, 1, 8}, ramp(64, 1));
  file.add("model.layers.0.mlp.up_proj.weight", DType::f32, {2, 2, 2}, ramp(8, 1));
  file.add("spare", "I64", std::vector<int64_t>{}, std::vector<std::byte>(8));
  const auto model = open(dir, config("llama"), file);
  std::vector<std::string> listed;
  for (const ListedTensor& t : model->tensors())
    listed.push_back(fmt::format("{} {} [{}] {} {}", t.name, t.type, fmt::join(t.shape, ", "), t.values, t.bytes));
  EXPECT_EQ(listed,
            (std::vector<std::string>{"model.norm.weight bf16 [2, 1, 4, 1, 8] 64 128",
                                      "model.layers.0.mlp.up_proj.weight f32 [2, 2, 2] 8 32", "spare i64 [] 1 8"}));
  const std::string where = (dir.path() / "config.json").string();
  EXPECT_EQ(
      outcome([&] { model->weights().get(weight("model.norm", 1, 64)); }),
      "corrupt_file: " + where + ": model.norm.weight has the shape [2, 1, 4, 1, 8], a weight is a matrix or a vector");
  EXPECT_EQ(outcome([&] { model->weights().get(weight("model.layers.0.mlp.up_proj", 2, 4)); }),
            "corrupt_file: " + where +
                ": model.layers.0.mlp.up_proj.weight has the shape [2, 2, 2], a weight is a matrix or a vector");
}

TEST(OpenFolder, reads_kv_config_generation_config_and_templates) {
  TempDir dir;
  dir.write("kv_config.json", R"([{"layer_idx": 1, "bits": 4, "group_size": 64}])");
  dir.write("generation_config.json", R"({"eos_token_id": [256, 257]})");
  dir.write("chat_template.jinja", "{{ messages }}");
  dir.write("additional_chat_templates/tool_use.jinja", "tools");
  dir.write("README.md", "---\nlicense: apache-2.0\n---\n# Tiny\n");
  const auto model = test::open_tiny_model({}, dir);
  EXPECT_EQ(model->license(), "apache-2.0");
  EXPECT_EQ(model->format(), "safetensors");
  EXPECT_EQ(model->kv(), (std::vector<graph::KvFormat>{graph::KvFormat::bf16, graph::KvFormat::q4}));
  EXPECT_EQ(model->spec().end_ids, (std::vector<int32_t>{257, 256, 257}));
  EXPECT_EQ(model->templates().at("default"), "{{ messages }}");
  EXPECT_EQ(model->templates().at("tool_use"), "tools");
  EXPECT_EQ(text::Tokenizer(model->tokenizer()).vocab_size(), 258);
  EXPECT_FALSE(model->spec().tied);
  EXPECT_EQ(model->tensors().size(), 2 + 9 * 2 + 1u);  // table, head, nine a layer, the last norm
}

TEST(OpenFolder, later_sources_of_templates_replace_earlier_ones) {
  TempDir dir;
  test::write_tiny_model({}, dir);
  const auto templates = [&] { return Model::open(dir.path())->templates(); };
  EXPECT_TRUE(templates().empty());
  dir.write("chat_template.json", R"({"chat_template": "of a processor"})");
  EXPECT_EQ(templates(), (Templates{{"default", "of a processor"}}));
  dir.write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(templates(), (Templates{{"default", "of a processor"}}));
  dir.write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "listed"},
                                                           {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(templates(), (Templates{{"default", "listed"}, {"tool_use", "tools"}}));
  dir.write("chat_template.jinja", "file");
  EXPECT_EQ(templates(), (Templates{{"default", "file"}}));  // the others are not mixed in
  dir.write("additional_chat_templates/tool_use.jinja", "more");
  EXPECT_EQ(templates(), (Templates{{"default", "file"}, {"tool_use", "more"}}));
}

TEST(OpenFolder, refuses_templates_of_another_shape) {
  const auto refusal_of = [](const char* name, const char* text) {
    TempDir dir;
    test::write_tiny_model({}, dir);
    dir.write(name, text);
    std::string said = outcome([&] { Model::open(dir.path()); });
    const std::string place = dir.path().string() + "/";
    if (const size_t at = said.find(place); at != std::string::npos) said.erase(at, place.size());
    return said;
  };
  EXPECT_EQ(refusal_of("chat_template.json", R"({"chat_template": 5})"),
            "corrupt_file: chat_template.json: chat_template: expected an array, found a number");
  EXPECT_EQ(refusal_of("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})"),
            "corrupt_file: tokenizer_config.json: chat_template: an entry lacks name or template");
  EXPECT_EQ(refusal_of("tokenizer_config.json", R"({"chat_template": [{"name": "a", "template": "1"},
                                                                      {"name": "a", "template": "2"}]})"),
            "corrupt_file: tokenizer_config.json: chat_template: two templates are named \"a\"");
  EXPECT_EQ(refusal_of("chat_template.json", "[1"), "corrupt_file: chat_template.json: incomplete JSON at byte 2");
}

TEST(OpenFolder, reads_the_small_files_of_its_tokenizer) {
  TempDir dir;
  dir.write("added_tokens.json", R"({"<call>": 258, "<turn>": 259})");
  dir.write("special_tokens_map.json", R"({"eos_token": "<turn>"})");
  const text::Tokenizer tokenizer(test::open_tiny_model({}, dir)->tokenizer());
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.eos_text(), "<turn>");
  EXPECT_TRUE(tokenizer.is_special(259));
  EXPECT_FALSE(tokenizer.is_special(258));
  dir.write("added_tokens.json", R"({"<call>": "x"})");
  EXPECT_EQ(outcome([&] { test::open_tiny_model({}, dir)->tokenizer(); }),
            "corrupt_file: " + (dir.path() / "added_tokens.json").string() +
                ": \"<call>\": expected an integer, found a string");
}

TEST(OpenFolder, refuses_kv_config_for_layers_beyond_the_last) {
  TempDir dir;
  dir.write("kv_config.json", R"([{"layer_idx": 2, "bits": 4, "group_size": 64}])");
  EXPECT_EQ(outcome([&] { test::open_tiny_model({}, dir); }),
            "corrupt_file: " + (dir.path() / "kv_config.json").string() + ": layer 2 of 2 layers");
}

TEST(Forward, asks_for_every_tensor_of_the_file_and_no_other) {
  TempDir dir;
  const auto model = test::open_tiny_model({}, dir);
  const graph::Program p = forward(model->spec(), {.activation = DType::f32, .kv = {}});
  for (const graph::ValueId id : p.weights) model->weights().get(p.value(id));
  EXPECT_TRUE(model->weights().surplus().empty());
  ASSERT_EQ(p.segments.size(), 4u);
  EXPECT_EQ(p.segments[1].name, "model.layers.0");
  EXPECT_EQ(p.segments[3].name, "head");
  EXPECT_EQ(p.kv_groups.size(), 1u);
  EXPECT_EQ(p.value(p.results[0]).cols, 258);
  EXPECT_EQ(p.value(p.results[0]).rows, graph::Rows::gathered);
}

}  // namespace
}  // namespace hearth::model
