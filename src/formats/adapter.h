// LoRA adapters from files (spec server 38, models 44, training 3): mlx-lm's adapters.safetensors and PEFT's
// adapter_model.safetensors, with their adapter_config.json, as one table of factors.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::formats {

inline constexpr int64_t kAdapterRankMax = 256;

// A linear of the base model that may be adapted, W [N, K]; `module` is the checkpoint's path
// "model.layers.3.self_attn.q_proj".
struct AdapterLinear {
  std::string module;
  int64_t N = 0, K = 0;
};

// y' = y + scale ((x A) B)
struct AdapterFactors {
  std::string module;  // as the base model spells it
  int64_t K = 0, R = 0, N = 0;
  float scale = 1;
  std::vector<float> a;  // [K, R]
  std::vector<float> b;  // [R, N]
};

struct Adapter {
  std::string id;              // name of the folder
  std::string base, revision;  // repository of the model that it was trained on, as the config says; may be empty
  std::vector<AdapterFactors> linears;  // in the order of the base model's

  int64_t rank_max() const;
  int64_t values() const;  // of all factors
};

// Throws Error{invalid_argument} for an empty id, "none", ".", ".." and one with + , / : or a control character.
void check_adapter_id(std::string_view id);

// The parts of an adapter: text of adapter_config.json, bytes of the weight file, their names in errors.
struct AdapterFiles {
  std::string_view config;
  std::span<const std::byte> weights;
  std::string config_name, weights_name;
};

// Factors are found by name: <module>.lora_a [K, R] and .lora_b [R, N], or PEFT's <module>.lora_A.weight [R, K] and
// .lora_B.weight [N, R]; module paths match behind base_model.model. and the prefixes of spec models 4. Types f32, f16,
// bf16. The scale of a module of rank R is, in this order: under rsLoRA (use_rslora, rs_lora) lora_alpha, else
// lora_parameters.scale, over sqrt(R); lora_parameters.scale as it is (20 where the object lacks it); lora_alpha / r,
// both by alpha_pattern and rank_pattern where a key names the module.
// Everything is checked before anything is returned. Throws Error{invalid_argument}: a module that the base lacks,
// shapes that do not fit it (with both), a rank outside 1 .. kAdapterRankMax, what is not supported, by name (DoRA,
// biases, modules_to_save, other methods); Error{corrupt_file}: a factor without its pair or given twice, NaN and
// infinite values, no factors at all, a config without a scale.
Adapter parse_adapter(const AdapterFiles& files, std::span<const AdapterLinear> base);

// Why the adapter was not trained on this model: both name a repository, or revision, and they differ; empty where
// nothing says so. A revision is a commit: "main" names none.
std::string base_mismatch(const Adapter& adapter, std::string_view repo, std::string_view revision);

// The files of an adapter's folder: of each kind the first one that is there.
inline constexpr std::array<const char*, 2> kAdapterWeightFiles = {"adapters.safetensors", "adapter_model.safetensors"};
inline constexpr std::array<const char*, 2> kAdapterConfigFiles = {"adapter_config.json", "optiq_lora_config.json"};

// What a folder is called. Throws as check_adapter_id.
std::string adapter_id_of(const std::filesystem::path& dir);

// The adapter in a folder. Throws as parse_adapter and check_adapter_id do; Error{not_found} for a folder without one.
Adapter read_adapter(const std::filesystem::path& dir, std::span<const AdapterLinear> base);

}  // namespace hearth::formats
