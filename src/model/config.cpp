// config.json -> ModelSpec. One function a family; what they share is read first.
#include <cmath>

#include "base/error.h"
#include "model/rope.h"
#include "model/spec.h"
#include "tensor/dtype.h"

namespace hearth::model {
namespace {

// A config object with its file's name in every message; text fields may be nested in text_config.
struct Config {
  const json::Value& root;
  const std::string& file;

  const json::Value* find(std::string_view key) const { return root.get(key); }
  int64_t integer(std::string_view key, std::optional<int64_t> absent = {}) const {
    if (const json::Value* v = find(key)) return v->as_int(place(key));
    return absent ? *absent : missing<int64_t>(key);
  }
  double number(std::string_view key, std::optional<double> absent = {}) const {
    if (const json::Value* v = find(key)) return v->as_double(place(key));
    return absent ? *absent : missing<double>(key);
  }
  bool boolean(std::string_view key, bool absent) const {
    const json::Value* v = find(key);
    return v ? v->as_bool(place(key)) : absent;
  }
  std::string text(std::string_view key, std::string absent) const {
    const json::Value* v = find(key);
    return v ? v->as_string(place(key)) : absent;
  }
  std::string place(std::string_view key) const { return fmt::format("{}: {}", file, key); }

 private:
  template <class T>
  T missing(std::string_view key) const {
    fail(ErrorKind::corrupt_file, "{}: {} is absent", file, key);
  }
};

graph::Activation parse_activation(const Config& c, const char* absent) {
  const std::string name = c.text("hidden_activation", c.text("hidden_act", absent));
  if (name == "silu" || name == "swish") return graph::Activation::silu;
  if (name == "gelu") return graph::Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast" || name == "gelu_tanh")
    return graph::Activation::gelu_tanh;
  if (name == "relu") return graph::Activation::relu;
  if (name == "relu2") return graph::Activation::relu2;
  fail(ErrorKind::invalid_argument,
       "{}: activation \"{}\" is unknown; supported: silu, gelu, gelu_pytorch_tanh, relu, relu2", c.file, name);
}

// Base and rule of a layer type: rope_parameters (flat, or keyed by layer type), else rope_theta and rope_scaling.
RopeInput rope_input(const Config& c, const ModelSpec& s, const char* layer_type, std::optional<double> family_base) {
  RopeInput in{.Dh = s.Dh, .context = s.context, .numbers = {}};
  const json::Value* parameters = c.find("rope_parameters");
  if (parameters && parameters->get(layer_type)) parameters = parameters->get(layer_type);
  const json::Value* scaling = parameters ? parameters : c.find("rope_scaling");
  if (scaling && !scaling->is_null()) {
    scaling->as_object(c.place(parameters ? "rope_parameters" : "rope_scaling"));
    in.numbers = *scaling;
    const json::Value* type = scaling->get("rope_type") ? scaling->get("rope_type") : scaling->get("type");
    if (type) in.type = type->as_string(c.place("rope_type"));
  }
  const json::Value* base = parameters ? parameters->get("rope_theta") : nullptr;
  if (base) in.base = base->as_double(c.place("rope_theta"));
  else if (c.find("rope_theta") || !family_base) in.base = c.number("rope_theta");
  else in.base = *family_base;
  const double partial = in.numbers.get("partial_rotary_factor")
                             ? in.numbers.get("partial_rotary_factor")->as_double(c.place("partial_rotary_factor"))
                             : c.number("partial_rotary_factor", 1.0);
  if (!(partial > 0 && partial <= 1))
    fail(ErrorKind::corrupt_file, "{}: partial_rotary_factor is {}, expected a share up to 1", c.file, partial);
  in.rot = static_cast<int64_t>(static_cast<double>(s.Dh) * partial);
  return in;
}

// The layer's type by layer_types, or empty when the config has no such list.
std::vector<std::string> layer_types(const Config& c) {
  std::vector<std::string> types;
  if (const json::Value* list = c.find("layer_types"))
    for (const json::Value& v : list->as_array(c.place("layer_types")))
      types.push_back(v.as_string(c.place("layer_types")));
  return types;
}

// Extents that a family's configs may leave out.
struct FamilyExtents {
  std::optional<int64_t> H, Hkv, V;
};
constexpr FamilyExtents kGemma3Extents{.H = 8, .Hkv = 4, .V = 262208};
constexpr FamilyExtents kBertExtents{.H = 12, .Hkv = {}, .V = 30522};

void read_common(const Config& c, ModelSpec& s, const FamilyExtents& family) {
  s.L = c.integer("num_hidden_layers");
  s.D = c.integer("hidden_size");
  s.H = c.integer("num_attention_heads", family.H);
  s.Hkv = c.integer("num_key_value_heads", family.Hkv.value_or(s.H));
  if (s.H <= 0) fail(ErrorKind::corrupt_file, "{}: num_attention_heads is {}", c.file, s.H);
  s.Dh = c.integer("head_dim", s.D / s.H);
  s.F = c.integer("intermediate_size");
  s.V = c.integer("vocab_size", family.V);
  s.context = c.integer("max_position_embeddings", 2048);
  s.eps = static_cast<float>(c.number("rms_norm_eps", 1e-6));
  s.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.Dh)));
  s.tied = c.boolean("tie_word_embeddings", false);
  const std::string dtype = c.text("torch_dtype", c.text("dtype", "bfloat16"));
  s.dtype = dtype == "float16" ? DType::f16 : dtype == "float32" ? DType::f32 : DType::bf16;
  s.activation = parse_activation(c, "silu");
}

// Windows by layer_types; without that list every layer has `window` (0: none).
void windows_by_type(const Config& c, ModelSpec& s, int64_t window, bool all_without_types) {
  const std::vector<std::string> types = layer_types(c);
  s.layers.assign(types.empty() ? static_cast<size_t>(std::max<int64_t>(s.L, 0)) : types.size(), LayerSpec{});
  for (size_t i = 0; i < s.layers.size(); ++i) {
    if (!types.empty() && types[i] != "full_attention" && types[i] != "sliding_attention")
      fail(ErrorKind::invalid_argument,
           "{}: layer_types[{}] \"{}\" is unknown; supported: full_attention, "
           "sliding_attention",
           c.file, i, types[i]);
    if (types.empty() ? all_without_types : types[i] == "sliding_attention") s.layers[i].window = window;
  }
}

void llama(const Config& c, ModelSpec& s) {
  s.qkv_bias = s.o_bias = c.boolean("attention_bias", false);
  s.mlp_bias = c.boolean("mlp_bias", false);
  windows_by_type(c, s, c.integer("sliding_window", 0), s.model_type == "mistral");
  s.ropes.push_back(make_rope(rope_input(c, s, "full_attention", {}), c.file));
}

void qwen2(const Config& c, ModelSpec& s) {
  s.qkv_bias = true;
  const bool windowed = c.boolean("use_sliding_window", false);
  windows_by_type(c, s, windowed ? c.integer("sliding_window", 0) : 0, false);
  const int64_t full = c.integer("max_window_layers", s.L);
  if (windowed && !c.find("layer_types"))
    for (int64_t i = std::max<int64_t>(0, full); i < s.L; ++i)
      s.layers[static_cast<size_t>(i)].window = c.integer("sliding_window", 0);
  s.ropes.push_back(make_rope(rope_input(c, s, "full_attention", {}), c.file));
}

void qwen3(const Config& c, ModelSpec& s) {
  qwen2(c, s);
  s.qkv_bias = s.o_bias = c.boolean("attention_bias", false);
  s.qk_norm = true;
}

void gemma3(const Config& c, ModelSpec& s) {
  s.order = LayerOrder::sandwich;
  s.qk_norm = s.norm_plus_one = true;
  s.qkv_bias = s.o_bias = c.boolean("attention_bias", false);
  s.tied = c.boolean("tie_word_embeddings", true);
  s.Dh = c.integer("head_dim", 256);
  s.activation = parse_activation(c, "gelu_pytorch_tanh");
  s.context = c.integer("max_position_embeddings", 131072);
  // A bf16 constant in the whole family, whatever the activations are.
  s.embed_scale = to_float(to_bf16(static_cast<float>(std::sqrt(static_cast<double>(s.D)))));
  s.attention_scale = static_cast<float>(1 / std::sqrt(c.number("query_pre_attn_scalar", static_cast<double>(s.Dh))));
  s.attention_cap = static_cast<float>(c.number("attn_logit_softcapping", 0.0));
  s.logit_cap = static_cast<float>(c.number("final_logit_softcapping", 0.0));
  const int64_t window = c.integer("sliding_window", 512);
  const int64_t pattern = c.integer("sliding_window_pattern", c.integer("_sliding_window_pattern", 6));
  if (pattern < 1) fail(ErrorKind::corrupt_file, "{}: sliding_window_pattern is {}", c.file, pattern);
  windows_by_type(c, s, window, true);
  if (!c.find("layer_types"))
    for (size_t i = 0; i < s.layers.size(); ++i)
      if ((static_cast<int64_t>(i) + 1) % pattern == 0) s.layers[i].window = 0;
  s.ropes.push_back(make_rope(rope_input(c, s, "full_attention", 1e6), c.file));
  RopeInput local = rope_input(c, s, "sliding_attention", 1e4);
  if (!c.find("rope_parameters")) {  // older files: the scaling belongs to the global layers alone
    local.type = "default";
    local.numbers = {};
    local.base = c.number("rope_local_base_freq", 1e4);
    local.keys = {{"rope_theta", "rope_local_base_freq"}};
  }
  s.ropes.push_back(make_rope(local, c.file));
  for (LayerSpec& layer : s.layers) layer.rope = layer.window > 0 ? 1 : 0;
}

void bert(const Config& c, ModelSpec& s) {
  s.order = LayerOrder::encoder;
  if (const std::string kind = c.text("position_embedding_type", "absolute"); kind != "absolute")
    fail(ErrorKind::invalid_argument, "{}: position_embedding_type \"{}\" is not supported; supported: absolute",
         c.file, kind);
  if (c.boolean("is_decoder", false))
    fail(ErrorKind::invalid_argument, "{}: {} as a decoder is not supported", c.file, s.model_type);
  if (s.D % s.H != 0) fail(ErrorKind::corrupt_file, "{}: {} heads do not share a width of {} evenly", c.file, s.H, s.D);
  s.activation = parse_activation(c, "gelu");
  s.eps = static_cast<float>(c.number("layer_norm_eps", 1e-12));
  if (!c.find("torch_dtype") && !c.find("dtype")) s.dtype = DType::f32;
  s.position_rows = c.integer("max_position_embeddings", 512);
  // The first token's row lies behind the pad's.
  if (s.model_type == "xlm-roberta") s.first_position = c.integer("pad_token_id", 1) + 1;
  s.context = s.position_rows - s.first_position;
  s.token_types = c.integer("type_vocab_size", 2);
  s.layers.assign(static_cast<size_t>(s.L), LayerSpec{.rope = -1});
}

}  // namespace

ModelSpec parse_config(const json::Value& config, const std::string& file) {
  const Config outer{config, file};
  ModelSpec s;
  s.file = file;
  s.model_type = outer.text("model_type", "");
  const json::Value* nested = outer.find("text_config");
  if (nested) nested->as_object(outer.place("text_config"));
  const Config c{nested ? *nested : config, file};
  void (*family)(const Config&, ModelSpec&) = nullptr;
  if (s.model_type == "llama" || s.model_type == "mistral") family = llama;
  else if (s.model_type == "qwen2") family = qwen2;
  else if (s.model_type == "qwen3") family = qwen3;
  else if (s.model_type == "gemma3" || s.model_type == "gemma3_text") family = gemma3;
  else if (s.model_type == "bert" || s.model_type == "xlm-roberta") family = bert;
  if (!family)
    fail(ErrorKind::invalid_argument, "{}: model_type \"{}\" is not supported; supported: {}", file, s.model_type,
         fmt::join(supported_model_types(), ", "));
  read_common(c, s, family == gemma3 ? kGemma3Extents : family == bert ? kBertExtents : FamilyExtents{});
  check_extents(s);
  family(c, s);
  add_end_ids(c.find("eos_token_id"), c.place("eos_token_id"), s);
  if (nested) add_end_ids(outer.find("eos_token_id"), outer.place("eos_token_id"), s);
  check(s);
  return s;
}

}  // namespace hearth::model
