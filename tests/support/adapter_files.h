// Random adapters, in memory and as the folders that mlx-lm and PEFT write.
#pragma once
#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "formats/adapter.h"
#include "support/safetensors_file.h"
#include "support/temp_dir.h"

namespace hearth::test {

struct AdapterCase {
  std::string id = "style";
  int64_t R = 8;
  float scale = 2;
  uint64_t seed = 1;
  double size = 0.1;  // of A's and B's values
  std::string only;   // modules whose name ends so; empty: all
};

inline formats::Adapter random_adapter(std::span<const formats::AdapterLinear> base, const AdapterCase& c = {}) {
  Random random(c.seed);
  formats::Adapter adapter{.id = c.id, .base = {}, .revision = {}, .linears = {}};
  for (const formats::AdapterLinear& l : base) {
    if (!l.module.ends_with(c.only)) continue;
    formats::AdapterFactors f{.module = l.module, .K = l.K, .R = c.R, .N = l.N, .scale = c.scale, .a = {}, .b = {}};
    for (int64_t i = 0; i < f.K * f.R; ++i) f.a.push_back(static_cast<float>(c.size * random.normal()));
    for (int64_t i = 0; i < f.R * f.N; ++i) f.b.push_back(static_cast<float>(c.size * random.normal()));
    adapter.linears.push_back(std::move(f));
  }
  return adapter;
}

inline std::vector<float> turned(const std::vector<float>& x, int64_t rows, int64_t cols) {
  std::vector<float> y(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) y[static_cast<size_t>(j * rows + i)] = x[static_cast<size_t>(i * cols + j)];
  return y;
}

// `prefix` replaces the "model." of module paths.
inline std::string native_weights(const formats::Adapter& adapter, DType type = DType::f32,
                                  const std::string& prefix = "model.") {
  SafetensorsFile file;
  for (const formats::AdapterFactors& f : adapter.linears) {
    const std::string module = prefix + f.module.substr(6);
    file.add(module + ".lora_a", type, {f.K, f.R}, f.a);
    file.add(module + ".lora_b", type, {f.R, f.N}, f.b);
  }
  return file.bytes();
}
inline std::string peft_weights(const formats::Adapter& adapter, DType type = DType::f32) {
  SafetensorsFile file;
  for (const formats::AdapterFactors& f : adapter.linears) {
    file.add("base_model.model." + f.module + ".lora_A.weight", type, {f.R, f.K}, turned(f.a, f.K, f.R));
    file.add("base_model.model." + f.module + ".lora_B.weight", type, {f.N, f.R}, turned(f.b, f.R, f.N));
  }
  return file.bytes();
}

// Folders <dir>/<id>; all modules have one rank and one scale.
inline std::filesystem::path write_native(const formats::Adapter& adapter, const TempDir& dir) {
  const formats::AdapterFactors& f = adapter.linears.front();
  dir.write(adapter.id + "/adapter_config.json",
            fmt::format(R"({{"fine_tune_type": "lora", "num_layers": 2, "lora_parameters": {{"rank": {}, "scale": {},
                "dropout": 0.0}}}})",
                        f.R, f.scale));
  return dir.write(adapter.id + "/adapters.safetensors", native_weights(adapter)).parent_path();
}
inline std::filesystem::path write_peft(const formats::Adapter& adapter, const TempDir& dir) {
  const formats::AdapterFactors& f = adapter.linears.front();
  dir.write(adapter.id + "/adapter_config.json",
            fmt::format(R"({{"peft_type": "LORA", "r": {}, "lora_alpha": {}, "bias": "none"}})", f.R,
                        static_cast<double>(f.scale) * static_cast<double>(f.R)));
  return dir.write(adapter.id + "/adapter_model.safetensors", peft_weights(adapter)).parent_path();
}

}  // namespace hearth::test
