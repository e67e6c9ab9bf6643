// GGUF metadata -> ModelSpec.
#include <cmath>

#include "base/error.h"
#include "model/rope.h"
#include "model/spec.h"
#include "tensor/dtype.h"

namespace hearth::model {
namespace {

// Keys of an architecture: "<arch>.<key>".
struct Keys {
  const formats::GgufFile& file;
  std::string arch;

  std::string key(std::string_view name) const { return fmt::format("{}.{}", arch, name); }
  bool has(std::string_view name) const { return file.find(key(name)) != nullptr; }
  int64_t integer(std::string_view name, std::optional<int64_t> absent = {}) const {
    if (const auto v = file.integer(key(name))) return *v;
    if (!absent) fail(ErrorKind::corrupt_file, "{}: {} is absent", file.name(), key(name));
    return *absent;
  }
  double number(std::string_view name, std::optional<double> absent = {}) const {
    if (const auto v = file.number(key(name))) return *v;
    if (!absent) fail(ErrorKind::corrupt_file, "{}: {} is absent", file.name(), key(name));
    return *absent;
  }
};

int64_t rows_of_table(const Keys& k, std::string_view name) {
  if (const formats::GgufTensor* table = k.file.find_tensor(name)) return table->N();
  fail(ErrorKind::corrupt_file, "{}: tensor {} is absent", k.file.name(), name);
}

// base_key: where `base` stands, or would; scaled: the file's scaling holds for these layers.
graph::RopeSpec rope(const Keys& k, const ModelSpec& s, std::string_view base_key, double base, bool scaled) {
  RopeInput in{.base = base,
               .Dh = s.Dh,
               .rot = k.integer("rope.dimension_count", s.Dh),
               .context = s.context,
               .numbers = {},
               .keys = {{"rope_theta", k.key(base_key)},
                        {"rope_type", k.key("rope.scaling.type")},
                        {"partial_rotary_factor", k.key("rope.dimension_count")}}};
  if (const auto type = scaled ? k.file.string(k.key("rope.scaling.type")) : std::nullopt; type && *type != "none") {
    in.type = std::string(*type);
    json::Object numbers;
    const auto copy = [&](std::string_view from, std::string_view to) {
      if (const auto v = k.file.number(k.key(from))) numbers[to] = *v;
      in.keys.emplace(to, k.key(from));
    };
    copy("rope.scaling.factor", "factor");
    copy("rope.scaling.original_context_length", "original_max_position_embeddings");
    copy("rope.scaling.yarn_beta_fast", "beta_fast");
    copy("rope.scaling.yarn_beta_slow", "beta_slow");
    in.numbers = std::move(numbers);
  }
  graph::RopeSpec spec = make_rope(in, k.file.name());
  if (const formats::GgufTensor* factors = scaled ? k.file.find_tensor("rope_freqs.weight") : nullptr) {
    if (factors->N() != 1 || factors->K() != in.rot / 2)
      fail(ErrorKind::corrupt_file, "{}: rope_freqs.weight has {} values, {} pairs turn", k.file.name(),
           factors->N() * factors->K(), in.rot / 2);
    std::vector<float> divisors(static_cast<size_t>(in.rot / 2));
    decode_row(factors->packed(), 0, divisors);
    for (size_t i = 0; i < divisors.size(); ++i) {
      if (!(divisors[i] > 0) || !std::isfinite(divisors[i]))
        fail(ErrorKind::corrupt_file, "{}: rope_freqs.weight holds a factor of {}", k.file.name(), divisors[i]);
      spec.inv_freq[i] /= divisors[i];
    }
  }
  return spec;
}

// Which layers have a window: attention.sliding_window_pattern is a number, each so many-th layer being global, or a
// list of one boolean or integer a layer.
std::vector<bool> windowed_layers(const Keys& k, int64_t L) {
  const std::string key = k.key("attention.sliding_window_pattern");
  std::vector<bool> windowed(static_cast<size_t>(L));
  const formats::GgufValue* value = k.file.find(key);
  if (value && value->type == formats::GgufType::array) {
    const formats::GgufArray list = *k.file.array(key);
    const bool booleans = list.type == formats::GgufType::boolean;
    if ((!booleans && !list.holds_integers()) || list.size() != windowed.size())
      fail(ErrorKind::corrupt_file, "{}: {} has {} values of {} for {} layers", k.file.name(), key, list.size(),
           name_of(list.type), L);
    for (size_t i = 0; i < windowed.size(); ++i)
      windowed[i] = booleans ? list.bytes[i] != std::byte{0} : list.integer(i) != 0;
    return windowed;
  }
  const int64_t pattern = k.integer("attention.sliding_window_pattern", 6);
  if (pattern < 1) fail(ErrorKind::corrupt_file, "{}: {} is {}", k.file.name(), key, pattern);
  for (size_t i = 0; i < windowed.size(); ++i) windowed[i] = (static_cast<int64_t>(i) + 1) % pattern != 0;
  return windowed;
}

void gemma3(const Keys& k, ModelSpec& s) {
  s.model_type = "gemma3_text";
  s.order = LayerOrder::sandwich;
  s.qk_norm = true;
  s.activation = graph::Activation::gelu_tanh;
  s.embed_scale = to_float(to_bf16(static_cast<float>(std::sqrt(static_cast<double>(s.D)))));
  // The files leave query_pre_attn_scalar out: it is Dh, but D / H in the 27B (62 layers).
  if (s.L == 62) s.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.D / s.H)));
  s.attention_cap = static_cast<float>(k.number("attn_logit_softcapping", 0.0));
  s.logit_cap = static_cast<float>(k.number("final_logit_softcapping", 0.0));
  s.ropes.push_back(rope(k, s, "rope.freq_base", k.number("rope.freq_base", 1e6), true));
  const bool older = !k.has("rope.freq_base_swa") && k.has("rope.local.freq_base");
  const std::string_view local_base = older ? "rope.local.freq_base" : "rope.freq_base_swa";
  s.ropes.push_back(rope(k, s, local_base, k.number(local_base, 1e4), false));
  const LayerSpec global{.window = 0, .rope = 0};
  const LayerSpec local{.window = k.integer("attention.sliding_window", 512), .rope = 1};
  const std::vector<bool> windowed = windowed_layers(k, s.L);
  for (const bool has_window : windowed) s.layers.push_back(has_window ? local : global);
}

// Also XLM-RoBERTa, whose converter drops the rows in front of the first position.
void bert(const Keys& k, ModelSpec& s) {
  s.order = LayerOrder::encoder;
  s.activation = graph::Activation::gelu;
  s.dtype = DType::f32;
  s.position_rows = rows_of_table(k, "position_embd.weight");
  s.token_types = rows_of_table(k, "token_types.weight");
  s.layers.assign(static_cast<size_t>(s.L), LayerSpec{.rope = -1});
}

void flat(const Keys& k, ModelSpec& s, std::optional<double> base) {
  s.ropes.push_back(rope(k, s, "rope.freq_base", k.number("rope.freq_base", base), true));
  s.layers.assign(static_cast<size_t>(s.L), LayerSpec{});
}

void end_ids(const formats::GgufFile& file, ModelSpec& s) {
  for (const char* name : {"eos", "eot", "eom"}) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    if (const auto id = file.integer(key)) add_end_id(*id, fmt::format("{}: {}", file.name(), key), s);
  }
}

}  // namespace

ModelSpec parse_gguf(const formats::GgufFile& file) {
  const auto arch = file.string("general.architecture");
  if (!arch) fail(ErrorKind::corrupt_file, "{}: general.architecture is absent", file.name());
  const Keys k{file, std::string(*arch)};
  ModelSpec s;
  s.file = file.name();
  s.model_type = k.arch;
  if (k.arch != "llama" && k.arch != "qwen2" && k.arch != "qwen3" && k.arch != "gemma3" && k.arch != "bert")
    fail(ErrorKind::invalid_argument,
         "{}: architecture \"{}\" is not supported; supported: llama, qwen2, qwen3, gemma3, bert", file.name(), k.arch);
  if (k.integer("expert_count", 0) > 0)
    fail(ErrorKind::invalid_argument, "{}: {} with {} experts is not supported", file.name(), k.arch,
         k.integer("expert_count"));
  s.L = k.integer("block_count");
  s.D = k.integer("embedding_length");
  s.H = k.integer("attention.head_count");
  s.Hkv = k.integer("attention.head_count_kv", s.H);
  if (s.H <= 0) fail(ErrorKind::corrupt_file, "{}: {} is {}", file.name(), k.key("attention.head_count"), s.H);
  s.Dh = k.integer("attention.key_length", s.D / s.H);
  if (k.integer("attention.value_length", s.Dh) != s.Dh)
    fail(ErrorKind::invalid_argument, "{}: value heads of {} beside key heads of {} are not supported", file.name(),
         k.integer("attention.value_length"), s.Dh);
  s.F = k.integer("feed_forward_length");
  s.V = rows_of_table(k, "token_embd.weight");
  s.context = k.integer("context_length");
  s.eps = static_cast<float>(
      k.number(k.arch == "bert" ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"));
  s.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.Dh)));
  s.qkv_bias = file.find_tensor("blk.0.attn_q.bias") != nullptr;
  s.o_bias = file.find_tensor("blk.0.attn_output.bias") != nullptr;
  s.mlp_bias = file.find_tensor("blk.0.ffn_gate.bias") != nullptr;
  s.tied = file.find_tensor("output.weight") == nullptr;
  s.gguf_pair_rows = k.arch == "llama";
  s.qk_norm = k.arch == "qwen3";
  check_extents(s);
  if (k.arch == "gemma3") gemma3(k, s);
  else if (k.arch == "bert") bert(k, s);
  else flat(k, s, k.arch == "llama" ? std::optional(1e4) : std::nullopt);
  end_ids(file, s);
  check(s);
  return s;
}

}  // namespace hearth::model
