// The room's parsers as functions of bytes alone, each followed by every reading that its table offers. Shared by the
// allocation tests, the mutators and the fuzz targets.
#pragma once
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/adapter.h"
#include "formats/config.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "tensor/packed.h"

namespace hearth::test {

// Reads all; the sum keeps the reads from being optimised away.
inline double read_gguf(std::string_view bytes) {
  using namespace formats;
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "f");
  double sum = 0;
  for (const GgufValue& v : file.values()) {
    HEARTH_CHECK(file.find(v.key) == &v);
    if (v.type == GgufType::array) {
      const GgufArray a = *file.array(v.key);
      if (a.holds_strings())
        for (const std::string_view s : a.strings()) sum += s.empty() ? 0 : s.back();
      else if (a.holds_numbers())
        for (size_t i = 0; i < a.size(); ++i) sum += a.number(i);
    } else if (v.type == GgufType::string) {
      const std::string_view s = *file.string(v.key);
      sum += s.empty() ? 0 : s.front();
    } else if (v.type == GgufType::boolean) {
      sum += *file.boolean(v.key);
    } else {
      sum += *file.number(v.key);
    }
  }
  for (const GgufTensor& t : file.tensors()) {
    HEARTH_CHECK(file.find_tensor(t.name) == &t);
    const PackedTensor w = t.packed();
    validate(w, t.name);
    sum += static_cast<double>(decode_value(w, 0, 0) + decode_value(w, w.N - 1, w.K - 1));
  }
  return sum;
}

inline double read_safetensors(std::string_view bytes) {
  using namespace formats;
  const SafetensorsHeader header = parse_safetensors(std::as_bytes(std::span(bytes)), "f");
  double sum = 0;
  for (const SafeTensor& t : header.tensors) {
    if (!t.dtype) continue;
    const TensorView view{*t.dtype, t.shape, t.data};
    validate(view, t.name);
    sum += static_cast<double>(view.value(0) + view.value(t.shape.size() - 1));
  }
  return sum;
}

inline double read_index(std::string_view bytes) {
  const formats::SafetensorsIndex index = formats::parse_safetensors_index(bytes, "f");
  double sum = 0;
  for (const auto& [tensor, file] : index.tensors)
    sum += static_cast<double>(index.files.at(file).size() + tensor.size());
  return sum;
}

// config.json with its quantization table; an array is read as kv_config.json.
inline double read_config(std::string_view bytes) {
  using namespace formats;
  double sum = 0;
  if (bytes.starts_with('[')) {
    for (const KvLayer& layer : parse_kv_config(bytes, "f")) sum += layer.layer + layer.bits;
    return sum;
  }
  const json::Value config = parse_config(bytes, "f");
  if (const auto table = QuantTable::of(config, "f"))
    for (const auto& [module, entry] : table->modules()) {
      HEARTH_CHECK(table->lookup(module) == entry);
      HEARTH_CHECK(!entry.quantized || (is_affine_width(entry.bits) && is_affine_group(entry.group)));
      sum += entry.bits;
    }
  return sum;
}

// An adapter for a model of two small linears: its config, a zero byte, its weights.
inline double read_adapter(std::string_view bytes) {
  using namespace formats;
  static const std::vector<AdapterLinear> kBase = {{"model.layers.0.q_proj", 3, 2}, {"model.layers.0.o_proj", 2, 3}};
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string_view weights = bytes.substr(std::min(end + 1, bytes.size()));
  const Adapter adapter = parse_adapter({.config = bytes.substr(0, end),
                                         .weights = std::as_bytes(std::span(weights)),
                                         .config_name = "f",
                                         .weights_name = "f"},
                                        kBase);
  double sum = 0;
  for (const AdapterFactors& f : adapter.linears) {
    HEARTH_CHECK(std::cmp_equal(f.a.size(), f.K * f.R) && std::cmp_equal(f.b.size(), f.R * f.N) && f.R > 0);
    for (const float v : f.a) sum += double{v} * f.scale;
    for (const float v : f.b) sum += v;
  }
  return sum;
}

}  // namespace hearth::test
