// Module paths to hub and MLX tensor names: prefixes of spec models 4, affine modules by their scales.
#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "model/weights.h"

namespace hearth::model {
namespace {

// Tried in this order in place of our own "model." (spec models 4).
constexpr std::array<std::string_view, 7> kPrefixes = {
    "model.", "", "language_model.", "language_model.model.", "model.language_model.", "bert.", "roberta."};

bool expected_surplus(std::string_view name) {
  for (const std::string_view part :
       {"rotary_emb.inv_freq", "vision_tower.", "vision_model.", "audio_tower.", "multi_modal_projector.", "mtp.",
        "embed_vision.", "embed_audio.", "position_ids", "pooler.dense.", "cls.predictions.", "cls.seq_relationship."})
    if (name.find(part) != std::string_view::npos) return true;
  for (const std::string_view end : {"input_min", "input_max", "output_min", "output_max"})
    if (name.ends_with(end)) return true;
  return false;
}

class SafetensorsWeights final : public WeightTable {
 public:
  SafetensorsWeights(const ModelSpec& spec, const formats::ModelDir& dir, const formats::Safetensors& files)
      : WeightTable(spec, files.files()), dir_(dir), files_(files) {}

  bool has(std::string_view module) const override {
    return !locate(module, ".weight").empty() || (module.ends_with("LayerNorm") && !locate(module, ".gamma").empty());
  }

  std::vector<std::string> surplus() const override {
    std::vector<std::string> names;
    for (const formats::SafeTensor& t : files_.tensors())
      if (!asked_.contains(t.name) && !expected_surplus(t.name)) names.push_back(t.name);
    return names;
  }

 protected:
  PackedTensor find(const graph::ValueInfo& weight) override {
    const bool bias = weight.name.ends_with(".bias");
    std::string name = locate(weight.name, bias ? "" : ".weight");
    if (name.empty() && bias && weight.name.ends_with("LayerNorm.bias"))
      name = locate(weight.name.substr(0, weight.name.size() - 5), ".beta");  // the spelling of BERT's first files
    if (name.empty() && weight.name.ends_with("LayerNorm")) {
      name = locate(weight.name, ".gamma");
      if (!name.empty()) return plain(take(name));
    }
    if (name.empty())
      fail(ErrorKind::corrupt_file, "{}: tensor {}{} is absent", spec_.file, weight.name, bias ? "" : ".weight");
    const std::string module = bias ? name : name.substr(0, name.size() - 7);
    const formats::SafeTensor& tensor = take(name);
    if (const formats::SafeTensor* scales = bias ? nullptr : files_.find(module + ".scales"))
      return affine(module, tensor, take(scales->name), take_needed(module + ".biases"));
    return plain(tensor);
  }

 private:
  const formats::SafeTensor& take(const std::string& name) {
    asked_.insert(name);
    return *files_.find(name);
  }
  const formats::SafeTensor& take_needed(const std::string& name) {
    if (!files_.find(name)) fail(ErrorKind::corrupt_file, "{}: tensor {} is absent", spec_.file, name);
    return take(name);
  }

  // The file's name of "<module><suffix>" under the prefixes; empty when absent.
  std::string locate(std::string_view module, std::string_view suffix) const {
    const bool top = !module.starts_with("model.");  // lm_head
    const std::string_view rest = top ? module : module.substr(6);
    for (const std::string_view prefix : kPrefixes) {
      const std::string_view before = top && prefix == "model." ? "" : prefix;
      std::string name = fmt::format("{}{}{}", before, rest, suffix);
      if (files_.find(name)) return name;
    }
    return {};
  }

  // [rows, cols] of a tensor; vectors are one row.
  std::pair<int64_t, int64_t> extents(const formats::SafeTensor& t) const {
    const auto dims = t.shape.dims();
    if (dims.size() == 1) return {1, dims[0]};
    if (dims.size() == 2) return {dims[0], dims[1]};
    fail(ErrorKind::corrupt_file, "{}: {} has the shape {}, a weight is a matrix or a vector", spec_.file, t.name,
         to_string(t.shape));
  }

  PackedTensor plain(const formats::SafeTensor& t) const {
    const auto [N, K] = extents(t);
    const DType type = t.dtype.value_or(DType::boolean);
    const Codec codec = type == DType::f32 ? Codec::f32 : type == DType::f16 ? Codec::f16 : Codec::bf16;
    if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
      fail(ErrorKind::invalid_argument, "{}: {} is {}; a weight is F32, F16, BF16 or quantized (affine)", spec_.file,
           t.name, t.dtype_name);
    return {{.codec = codec}, N, K, t.data, {}, {}};
  }

  PackedTensor affine(const std::string& module, const formats::SafeTensor& w, const formats::SafeTensor& scales,
                      const formats::SafeTensor& biases) const {
    if (!dir_.quantization)
      fail(ErrorKind::corrupt_file, "{}: {} has scales, but config.json has no quantization table", spec_.file, module);
    const formats::QuantEntry entry = quant_entry(*dir_.quantization, module);
    if (entry.bits == 0)
      fail(ErrorKind::corrupt_file, "{}: {} has scales, but the quantization table gives no width for it", spec_.file,
           module);
    const auto [N, words] = extents(w);
    const auto [rows, groups] = extents(scales);
    const int64_t K = groups * entry.group;
    if (w.dtype != DType::u32 || scales.dtype != biases.dtype || !is_affine_scale(scales.dtype.value_or(DType::i8)))
      fail(ErrorKind::corrupt_file, "{}: {} is {} with scales {} and biases {}", spec_.file, module, w.dtype_name,
           scales.dtype_name, biases.dtype_name);
    if (rows != N || extents(biases) != extents(scales) || words * 32 != K * entry.bits)
      fail(ErrorKind::corrupt_file,
           "{}: {} is [{}, {}] words with scales [{}, {}], the table says {} bits in groups of {}", spec_.file, module,
           N, words, rows, groups, entry.bits, entry.group);
    return {{Codec::affine, entry.bits, entry.group, *scales.dtype}, N, K, w.data, scales.data, biases.data};
  }

  const formats::ModelDir& dir_;
  const formats::Safetensors& files_;
  std::set<std::string> asked_;
};

}  // namespace

formats::QuantEntry quant_entry(const formats::QuantTable& table, std::string_view module) {
  if (table.modules().contains(module)) return table.lookup(module);
  std::string_view rest = module;
  for (const std::string_view prefix : {"model.language_model.", "language_model.model.", "language_model.", "model."})
    if (rest.starts_with(prefix)) {
      rest.remove_prefix(prefix.size());
      break;
    }
  for (const std::string_view prefix : kPrefixes) {
    const std::string name = fmt::format("{}{}", prefix, rest);
    if (table.modules().contains(name)) return table.lookup(name);
  }
  return table.defaults();
}

std::unique_ptr<WeightTable> safetensors_weights(const ModelSpec& spec, const formats::ModelDir& dir,
                                                 const formats::Safetensors& files) {
  return std::make_unique<SafetensorsWeights>(spec, dir, files);
}

}  // namespace hearth::model
