// Specs and weights from small GGUF files made here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "formats/builders.h"
#include "model/model.h"
#include "model/weights.h"
#include "support/temp_dir.h"

namespace hearth::model {
namespace {

// A GGUF in memory: keys and f32 tensors; `edit` changes them before the bytes are made.
struct File {
  std::string arch = "llama";
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> strings;
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // K first
    std::vector<float> values;
  };
  std::vector<Tensor> tensors;

  std::string bytes() const {
    test::GgufBytes f(tensors.size(), 1 + integers.size() + numbers.size() + strings.size());
    f.key("general.architecture", 8).string(arch);
    for (const auto& [key, v] : integers) f.scalar<int64_t>(key, 11, v);
    for (const auto& [key, v] : numbers) f.scalar<float>(key, 6, static_cast<float>(v));
    for (const auto& [key, v] : strings) f.key(key, 8).string(v);
    std::string data;
    for (const Tensor& t : tensors) {
      data.resize((data.size() + 31) / 32 * 32);
      f.tensor(t.name, t.dims, 0, data.size());
      data.append(reinterpret_cast<const char*>(t.values.data()), 4 * t.values.size());
    }
    f.data(0);
    return f.text + data;
  }
};

constexpr int64_t kD = 8, kDh = 4, kV = 6;

File sample(const std::string& arch = "llama") {
  File f;
  f.arch = arch;
  for (const auto& [key, v] : std::map<std::string, int64_t>{{"block_count", 7},
                                                             {"embedding_length", kD},
                                                             {"attention.head_count", 2},
                                                             {"attention.head_count_kv", 1},
                                                             {"feed_forward_length", 12},
                                                             {"context_length", 1024}})
    f.integers[arch + "." + key] = v;
  f.numbers[arch + ".attention.layer_norm_rms_epsilon"] = 1e-5;
  f.numbers[arch + ".rope.freq_base"] = 1e6;
  f.integers["tokenizer.ggml.eos_token_id"] = 2;
  f.integers["tokenizer.ggml.eot_token_id"] = 3;
  std::vector<float> table(kV * kD);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  f.tensors.push_back({"token_embd.weight", {kD, kV}, table});
  return f;
}

ModelSpec parse(const File& f) {
  const std::string bytes = f.bytes();
  return parse_gguf(formats::GgufFile::parse(test::as_bytes(bytes), "m.gguf"));
}

std::string refusal(const std::function<void(File&)>& edit, const std::string& arch = "llama") {
  File f = sample(arch);
  edit(f);
  return test::outcome([&] { parse(f); });
}

TEST(GgufSpec, llama) {
  const ModelSpec s = parse(sample());
  EXPECT_EQ(s.model_type, "llama");
  EXPECT_EQ(s.file, "m.gguf");
  EXPECT_EQ(s.L, 7);
  EXPECT_EQ(s.D, kD);
  EXPECT_EQ(s.Dh, kDh);
  EXPECT_EQ(s.Hkv, 1);
  EXPECT_EQ(s.F, 12);
  EXPECT_EQ(s.V, kV);  // rows of the table
  EXPECT_EQ(s.context, 1024);
  EXPECT_FLOAT_EQ(s.eps, 1e-5f);
  EXPECT_TRUE(s.gguf_pair_rows && s.tied);
  EXPECT_FALSE(s.qkv_bias || s.o_bias || s.mlp_bias || s.qk_norm || s.norm_plus_one);
  EXPECT_EQ(s.end_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_FLOAT_EQ(s.ropes[0].inv_freq[1], 1e-3f);
  EXPECT_EQ(s.ropes[0].pair_stride, 2);
}

TEST(GgufSpec, heads_of_their_own_width_biases_and_head_come_from_the_file) {
  File f = sample("qwen2");
  f.integers["qwen2.attention.key_length"] = 6;
  f.integers["qwen2.attention.value_length"] = 6;
  f.tensors.push_back({"blk.0.attn_q.bias", {12}, std::vector<float>(12)});
  f.tensors.push_back({"output.weight", {kD, kV}, std::vector<float>(kV * kD)});
  const ModelSpec s = parse(f);
  EXPECT_EQ(s.Dh, 6);
  EXPECT_TRUE(s.qkv_bias);
  EXPECT_FALSE(s.tied || s.gguf_pair_rows || s.o_bias);
  EXPECT_TRUE(parse(sample("qwen3")).qk_norm);
}

TEST(GgufSpec, gemma3_has_the_defaults_of_its_family) {
  File f = sample("gemma3");
  f.numbers.erase("gemma3.rope.freq_base");
  const ModelSpec s = parse(f);
  EXPECT_EQ(s.model_type, "gemma3_text");
  EXPECT_EQ(s.order, LayerOrder::sandwich);
  EXPECT_TRUE(s.qk_norm);
  EXPECT_FALSE(s.norm_plus_one);  // the file holds the sum
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(s.layers[i].window, i == 5 ? 0 : 512);
  EXPECT_FLOAT_EQ(s.ropes[0].inv_freq[1], 1e-3f);
  EXPECT_FLOAT_EQ(s.ropes[1].inv_freq[1], 1e-2f);
  EXPECT_EQ(s.embed_scale, to_float(to_bf16(std::sqrt(8.0f))));
}

TEST(GgufSpec, windows_may_be_listed_by_layer) {
  formats::GgufFile file;
  const auto spec_of = [&](uint32_t element, const std::vector<int>& list) {
    const File f = sample("gemma3");
    test::GgufBytes g(1, 1 + f.integers.size() + f.numbers.size() + 1);
    g.key("general.architecture", 8).string("gemma3");
    for (const auto& [key, v] : f.integers) g.scalar<int64_t>(key, 11, v);
    for (const auto& [key, v] : f.numbers) g.scalar<float>(key, 6, static_cast<float>(v));
    g.array("gemma3.attention.sliding_window_pattern", element, list.size());
    for (const int v : list)
      if (element == 7) g.number<uint8_t>(static_cast<uint8_t>(v));
      else g.number<float>(static_cast<float>(v));
    g.tensor("token_embd.weight", {kD, kV}, 0, 0).data(4 * kD * kV);
    file = formats::GgufFile::parse(test::as_bytes(g.text), "m.gguf");
    return parse_gguf(file);
  };
  const std::vector<int> list = {1, 0, 1, 1, 0, 0, 1};
  const ModelSpec s = spec_of(7, list);
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(s.layers[i].window, list[i] ? 512 : 0) << i;
    EXPECT_EQ(s.layers[i].rope, list[i]) << i;
  }
  const std::string key = "corrupt_file: m.gguf: gemma3.attention.sliding_window_pattern has ";
  EXPECT_EQ(test::outcome([&] { spec_of(7, {1, 0}); }), key + "2 values of boolean for 7 layers");
  EXPECT_EQ(test::outcome([&] { spec_of(6, list); }), key + "7 values of f32 for 7 layers");
}

TEST(GgufSpec, the_caps_of_a_gemma3_file_hold) {
  File f = sample("gemma3");
  f.numbers["gemma3.attn_logit_softcapping"] = 50;
  f.numbers["gemma3.final_logit_softcapping"] = 30;
  EXPECT_EQ(parse(f).attention_cap, 50);
  EXPECT_EQ(parse(f).logit_cap, 30);
}

TEST(GgufSpec, the_scale_of_gemma3_27b_is_of_its_width) {
  File f = sample("gemma3");
  f.integers["gemma3.attention.key_length"] = 16;
  f.integers["gemma3.attention.value_length"] = 16;
  EXPECT_FLOAT_EQ(parse(f).attention_scale, 0.25f);
  f.integers["gemma3.block_count"] = 62;
  EXPECT_FLOAT_EQ(parse(f).attention_scale, 0.5f);  // (D / H)^-0.5, D 8, H 2
}

TEST(GgufSpec, rope_rules_and_factors) {
  File f = sample();
  f.strings["llama.rope.scaling.type"] = "linear";
  f.numbers["llama.rope.scaling.factor"] = 4;
  EXPECT_FLOAT_EQ(parse(f).ropes[0].inv_freq[0], 0.25f);
  f.strings["llama.rope.scaling.type"] = "none";
  EXPECT_FLOAT_EQ(parse(f).ropes[0].inv_freq[0], 1);
  f.tensors.push_back({"rope_freqs.weight", {2}, {1, 8}});
  EXPECT_FLOAT_EQ(parse(f).ropes[0].inv_freq[0], 1);
  EXPECT_FLOAT_EQ(parse(f).ropes[0].inv_freq[1], 1e-3f / 8);
  f.tensors.back() = {"rope_freqs.weight", {3}, {1, 8, 8}};
  EXPECT_EQ(test::outcome([&] { parse(f); }), "corrupt_file: m.gguf: rope_freqs.weight has 3 values, 2 pairs turn");
  f.tensors.back() = {"rope_freqs.weight", {2}, {1, 0}};
  EXPECT_EQ(test::outcome([&] { parse(f); }), "corrupt_file: m.gguf: rope_freqs.weight holds a factor of 0");
}

TEST(GgufSpec, rotary_numbers_are_told_by_the_keys_of_the_file) {
  const auto scaled = [](const char* type, std::map<std::string, double> numbers) {
    return [type, numbers = std::move(numbers)](File& f) {
      f.strings["llama.rope.scaling.type"] = type;
      for (const auto& [key, v] : numbers) f.numbers["llama.rope.scaling." + key] = v;
    };
  };
  const std::string file = "corrupt_file: m.gguf: ", base = file + "the base of rotary embeddings (";
  EXPECT_EQ(refusal([](File& f) { f.numbers["llama.rope.freq_base"] = 0; }),
            base + "llama.rope.freq_base) is 0, it must be positive");
  EXPECT_EQ(refusal([](File& f) { f.numbers["gemma3.rope.freq_base"] = -1; }, "gemma3"),
            base + "gemma3.rope.freq_base) is -1, it must be positive");
  EXPECT_EQ(refusal([](File& f) { f.numbers["gemma3.rope.freq_base_swa"] = 0; }, "gemma3"),
            base + "gemma3.rope.freq_base_swa) is 0, it must be positive");
  EXPECT_EQ(refusal([](File& f) { f.numbers["gemma3.rope.local.freq_base"] = 0; }, "gemma3"),
            base + "gemma3.rope.local.freq_base) is 0, it must be positive");
  EXPECT_EQ(refusal([](File& f) { f.integers["llama.rope.dimension_count"] = 3; }),
            file + "3 of 4 head columns turn (llama.rope.dimension_count), an even number up to 4 is needed");
  EXPECT_EQ(refusal(scaled("linear", {})), file + "llama.rope.scaling.type linear needs llama.rope.scaling.factor");
  EXPECT_EQ(refusal(scaled("linear", {{"factor", 0}})),
            file + "llama.rope.scaling.type linear has llama.rope.scaling.factor 0, it must be positive");
  EXPECT_EQ(
      refusal(scaled("yarn", {{"factor", 2}, {"original_context_length", -1}})),
      file + "llama.rope.scaling.type yarn has llama.rope.scaling.original_context_length -1, it must be positive");
  EXPECT_EQ(refusal(scaled("yarn", {{"factor", 2}, {"yarn_beta_slow", -1}})),
            file + "llama.rope.scaling.type yarn has llama.rope.scaling.yarn_beta_slow -1, it must be positive");
  EXPECT_TRUE(
      refusal(scaled("spiral", {})).starts_with("invalid_argument: m.gguf: llama.rope.scaling.type \"spiral\" is"));
}

TEST(GgufSpec, refuses) {
  EXPECT_EQ(
      refusal([](File&) {}, "mamba"),
      "invalid_argument: m.gguf: architecture \"mamba\" is not supported; supported: llama, qwen2, qwen3, gemma3, "
      "bert");
  EXPECT_EQ(refusal([](File& f) { f.integers.erase("llama.block_count"); }),
            "corrupt_file: m.gguf: llama.block_count is absent");
  EXPECT_EQ(refusal([](File& f) { f.integers["llama.attention.head_count"] = 0; }),
            "corrupt_file: m.gguf: llama.attention.head_count is 0");
  EXPECT_EQ(refusal([](File& f) { f.tensors.clear(); }), "corrupt_file: m.gguf: tensor token_embd.weight is absent");
  EXPECT_EQ(refusal([](File& f) { f.integers["llama.expert_count"] = 8; }),
            "invalid_argument: m.gguf: llama with 8 experts is not supported");
  EXPECT_EQ(refusal([](File& f) { f.integers["llama.attention.value_length"] = 6; }),
            "invalid_argument: m.gguf: value heads of 6 beside key heads of 4 are not supported");
  EXPECT_EQ(refusal([](File& f) { f.numbers.erase("qwen2.rope.freq_base"); }, "qwen2"),
            "corrupt_file: m.gguf: qwen2.rope.freq_base is absent");
  EXPECT_EQ(refusal([](File& f) { f.integers["gemma3.attention.sliding_window_pattern"] = 0; }, "gemma3"),
            "corrupt_file: m.gguf: gemma3.attention.sliding_window_pattern is 0");
  EXPECT_EQ(refusal([](File& f) { f.integers["gemma3.attention.sliding_window"] = -1; }, "gemma3"),
            "corrupt_file: m.gguf: the window of layer 0 is -1");
  EXPECT_EQ(refusal([](File& f) { f.integers["tokenizer.ggml.eot_token_id"] = int64_t{1} << 32; }),
            "corrupt_file: m.gguf: tokenizer.ggml.eot_token_id: 4294967296 is no token id");
}

// What tokenizer() says of a file with one i64 array more.
std::string tokenizer_of(const std::string& key, const std::vector<int64_t>& list) {
  const File f = sample();
  test::GgufBytes g(1, 1 + f.integers.size() + f.numbers.size() + 3);
  g.key("general.architecture", 8).string("llama");
  for (const auto& [name, v] : f.integers) g.scalar<int64_t>(name, 11, name == "llama.block_count" ? 1 : v);
  for (const auto& [name, v] : f.numbers) g.scalar<float>(name, 6, static_cast<float>(v));
  g.key("tokenizer.ggml.model", 8).string("gpt2");
  g.array("tokenizer.ggml.tokens", 8, 4);
  for (const char* token : {"a", "b", "c", "d"}) g.string(token);
  g.array(key, 11, list.size());
  for (const int64_t v : list) g.number<int64_t>(v);
  g.tensor("token_embd.weight", {kD, kV}, 0, 0).data(4 * kD * kV);
  const test::TempDir dir;
  const std::unique_ptr<Model> model = Model::open(dir.write("m.gguf", g.text));
  std::string said = test::outcome([&] { model->tokenizer(); });
  const std::string folder = dir.path().string() + "/";
  if (const size_t at = said.find(folder); at != std::string::npos) said.erase(at, folder.size());
  return said;
}

TEST(GgufTokenizer, wide_numbers_are_not_cut_to_narrow_ones) {
  const std::string types = "tokenizer.ggml.token_type", map = "tokenizer.ggml.precompiled_charsmap";
  EXPECT_EQ(tokenizer_of(types, {1, 1, 1, 3}), "accepted");
  EXPECT_EQ(tokenizer_of(types, {1, 1, (int64_t{1} << 32) + 1, 3}),
            "corrupt_file: m.gguf: piece 2 has the type 4294967297, 1 to 6 are possible");
  EXPECT_EQ(tokenizer_of(map, {-128, 255}), "accepted");
  EXPECT_EQ(tokenizer_of(map, {0, 256}), "corrupt_file: m.gguf: " + map + "[1] is 256, a byte is expected");
  EXPECT_EQ(tokenizer_of(map, {-129}), "corrupt_file: m.gguf: " + map + "[0] is -129, a byte is expected");
}

TEST(GgufSpec, a_huge_layer_count_allocates_nothing) {
  for (const char* arch : {"llama", "gemma3"})
    EXPECT_EQ(refusal([&](File& f) { f.integers[std::string(arch) + ".block_count"] = 4'000'000'000'000'000; }, arch),
              "corrupt_file: m.gguf: layers is 4000000000000000, expected 1 to 4096");
}

graph::ValueInfo matrix(std::string name, int64_t N, int64_t K) {
  return {.role = graph::Role::weight, .rows = graph::Rows::fixed, .rows_fixed = N, .cols = K, .name = std::move(name)};
}

std::vector<float> values(const PackedTensor& t) {
  std::vector<float> out(static_cast<size_t>(t.N * t.K));
  for (int64_t n = 0; n < t.N; ++n)
    decode_row(t, n, std::span(out).subspan(static_cast<size_t>(n * t.K), static_cast<size_t>(t.K)));
  return out;
}

TEST(GgufWeights, module_paths_have_their_tensors) {
  File f = sample("gemma3");
  const std::pair<const char*, const char*> names[] = {
      {"model.norm", "output_norm.weight"},
      {"model.layers.3.input_layernorm", "blk.3.attn_norm.weight"},
      {"model.layers.3.post_attention_layernorm", "blk.3.post_attention_norm.weight"},
      {"model.layers.3.pre_feedforward_layernorm", "blk.3.ffn_norm.weight"},
      {"model.layers.3.post_feedforward_layernorm", "blk.3.post_ffw_norm.weight"},
      {"model.layers.3.self_attn.k_norm", "blk.3.attn_k_norm.weight"},
      {"model.layers.3.mlp.down_proj", "blk.3.ffn_down.weight"},
      {"model.layers.3.self_attn.o_proj", "blk.3.attn_output.weight"},
      {"model.layers.3.self_attn.q_proj.bias", "blk.3.attn_q.bias"}};
  float tag = 0;
  for (const auto& [module, tensor] : names) f.tensors.push_back({tensor, {1}, {++tag}});
  f.tensors.push_back({"blk.9.spare.weight", {1}, {0}});
  const std::string bytes = f.bytes();
  const formats::GgufFile file = formats::GgufFile::parse(test::as_bytes(bytes), "m.gguf");
  const ModelSpec spec = parse_gguf(file);
  const auto table = gguf_weights(spec, file);
  tag = 0;
  for (const auto& [module, tensor] : names)
    EXPECT_EQ(values(table->get(matrix(module, 1, 1))), std::vector<float>{++tag});
  EXPECT_TRUE(table->has("model.norm"));
  EXPECT_FALSE(table->has("lm_head"));
  EXPECT_EQ(table->surplus(), (std::vector<std::string>{"token_embd.weight", "blk.9.spare.weight"}));
  EXPECT_EQ(test::outcome([&] { table->get(matrix("model.layers.0.mlp.up_proj", 1, 1)); }),
            "corrupt_file: m.gguf: tensor blk.0.ffn_up.weight is absent");
  EXPECT_EQ(test::outcome([&] { table->get(matrix("model.embed_tokens", 4, 4)); }),
            "corrupt_file: m.gguf: model.embed_tokens is [6, 8], the config says [4, 4]");
}

TEST(GgufWeights, the_norm_before_the_mlp_has_the_hubs_name_in_pre_norm_models) {
  File f = sample();
  f.tensors.push_back({"blk.0.ffn_norm.weight", {1}, {5}});
  const std::string bytes = f.bytes();
  const formats::GgufFile file = formats::GgufFile::parse(test::as_bytes(bytes), "m.gguf");
  const ModelSpec spec = parse_gguf(file);
  EXPECT_EQ(values(gguf_weights(spec, file)->get(matrix("model.layers.0.post_attention_layernorm", 1, 1))),
            std::vector<float>{5});
}

// Writers of llama files store row i + t Dh / 2 of a head as row 2 i + t.
TEST(GgufWeights, q_and_k_rows_come_back_into_head_order) {
  const int64_t N = 2 * kDh;
  File f = sample();
  std::vector<float> original(static_cast<size_t>(N * kD)), stored(original.size()), bias(N), stored_bias(N);
  for (size_t i = 0; i < original.size(); ++i) original[i] = static_cast<float>(i);
  for (int64_t n = 0; n < N; ++n) {
    const int64_t head = n / kDh, d = n % kDh, t = d / (kDh / 2), i = d % (kDh / 2), to = head * kDh + 2 * i + t;
    std::copy_n(original.begin() + n * kD, kD, stored.begin() + to * kD);
    bias[static_cast<size_t>(n)] = static_cast<float>(100 + n);
    stored_bias[static_cast<size_t>(to)] = static_cast<float>(100 + n);
  }
  EXPECT_NE(stored, original);
  f.tensors.push_back({"blk.0.attn_q.weight", {kD, static_cast<uint64_t>(N)}, stored});
  f.tensors.push_back({"blk.0.attn_q.bias", {static_cast<uint64_t>(N)}, stored_bias});
  f.tensors.push_back({"blk.0.attn_v.weight", {kD, static_cast<uint64_t>(N)}, stored});
  const auto read = [&](const std::string& arch, const char* module, int64_t rows, int64_t cols) {
    File named = f;
    named.arch = arch;
    for (const auto& [key, v] : f.integers)
      if (key.starts_with("llama.")) named.integers[arch + key.substr(5)] = v;
    for (const auto& [key, v] : f.numbers)
      if (key.starts_with("llama.")) named.numbers[arch + key.substr(5)] = v;
    const std::string bytes = named.bytes();
    const formats::GgufFile file = formats::GgufFile::parse(test::as_bytes(bytes), "m.gguf");
    const ModelSpec spec = parse_gguf(file);
    const auto table = gguf_weights(spec, file);
    return values(table->get(matrix(module, rows, cols)));
  };
  EXPECT_EQ(read("llama", "model.layers.0.self_attn.q_proj", N, kD), original);
  EXPECT_EQ(read("llama", "model.layers.0.self_attn.q_proj.bias", 1, N), bias);
  EXPECT_EQ(read("llama", "model.layers.0.self_attn.v_proj", N, kD), stored);  // v rows are not turned
  EXPECT_EQ(read("qwen2", "model.layers.0.self_attn.q_proj", N, kD), stored);
}

}  // namespace
}  // namespace hearth::model
