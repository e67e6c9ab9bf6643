#include "model/weights.h"

#include <cstring>

#include "base/error.h"
#include "model/forward.h"

namespace hearth::model {
namespace {

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  for (const std::string_view end : ends)
    if (name.ends_with(end)) return true;
  return false;
}

bool is_key_offset(std::string_view name) { return name.ends_with(kKeyOffset); }

graph::ValueInfo bias_of(graph::ValueInfo offset) {
  offset.name.resize(offset.name.size() - kKeyOffset.size());
  offset.name += ".bias";
  return offset;
}

// "model.layers.12.self_attn..." -> 12
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "model.layers.";
  int64_t layer = 0;
  for (size_t i = kPrefix.size(); i < name.size() && name[i] != '.'; ++i) layer = 10 * layer + (name[i] - '0');
  return layer;
}

bool is_norm(std::string_view name) { return name.ends_with("norm") && !name.ends_with(".bias"); }

}  // namespace

PackedTensor WeightTable::stored(const graph::ValueInfo& weight) {
  const PackedTensor tensor = is_key_offset(weight.name) ? find(bias_of(weight)) : find(weight);
  if (tensor.N != weight.rows_fixed || tensor.K != weight.cols)
    fail(ErrorKind::corrupt_file, "{}: {} is [{}, {}], the config says [{}, {}]", spec_.file, weight.name, tensor.N,
         tensor.K, weight.rows_fixed, weight.cols);
  validate(tensor, weight.name);
  return tensor;
}

PackedTensor WeightTable::get(const graph::ValueInfo& weight) {
  if (!is_key_offset(weight.name)) return rewrite(weight, stored(weight));
  PackedTensor tensor = get(bias_of(weight));
  std::vector<float> bias(static_cast<size_t>(tensor.K));
  decode_row(tensor, 0, bias);
  const std::vector<float> offset = key_offset(spec_, layer_of(weight.name), bias);
  std::vector<std::byte>& bytes = owned_.emplace_back(offset.size() * 4);
  std::memcpy(bytes.data(), offset.data(), bytes.size());
  tensor.format = {.codec = Codec::f32};
  tensor.data = bytes;
  return tensor;
}

void WeightTable::release(const PackedTensor& tensor) {
  if (owned_.remove_if([&](const auto& bytes) { return bytes.data() == tensor.data.data(); }) > 0) return;
  for (const auto part : {tensor.data, tensor.scales, tensor.biases})
    for (const MappedFile& file : mapped_) {
      const std::span<const std::byte> bytes = file.bytes();
      if (!part.empty() && part.data() >= bytes.data() && part.data() < bytes.data() + bytes.size())
        file.release(static_cast<size_t>(part.data() - bytes.data()), part.size());
    }
}

PackedTensor WeightTable::rewrite(const graph::ValueInfo& weight, PackedTensor tensor) {
  if (spec_.norm_plus_one && is_norm(weight.name)) {
    // 1 + w, rounded to the type that the file stores.
    std::vector<float> values(static_cast<size_t>(tensor.K));
    decode_row(tensor, 0, values);
    const DType type = tensor.format.codec == Codec::bf16  ? DType::bf16
                       : tensor.format.codec == Codec::f16 ? DType::f16
                                                           : DType::f32;
    for (float& v : values) v = round_to(type, 1.0f + v);
    std::vector<std::byte>& bytes = owned_.emplace_back(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    tensor.format = {.codec = Codec::f32};
    tensor.data = bytes;
    return tensor;
  }
  if (spec_.gguf_pair_rows && ends_with_any(weight.name, {"q_proj", "k_proj", "q_proj.bias", "k_proj.bias"})) {
    // Row 2i + t of a head goes to i + t Dh / 2. A bias is one row of values: its "rows" are single values.
    const bool bias = weight.name.ends_with(".bias");
    if (bias && values_per_block(tensor.format) != 1)
      fail(ErrorKind::corrupt_file, "{}: {} is {}, a bias is f32, f16 or bf16", spec_.file, weight.name,
           name_of(tensor.format));
    const int64_t rows = bias ? tensor.K : tensor.N, half = spec_.Dh / 2;
    const int64_t bytes_per_row = static_cast<int64_t>(tensor.data.size()) / rows;
    std::vector<std::byte>& bytes = owned_.emplace_back(tensor.data.size());
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t head = n / spec_.Dh, d = n % spec_.Dh, to = head * spec_.Dh + d / 2 + d % 2 * half;
      std::memcpy(bytes.data() + to * bytes_per_row, tensor.data.data() + n * bytes_per_row,
                  static_cast<size_t>(bytes_per_row));
    }
    tensor.data = bytes;
  }
  return tensor;
}

}  // namespace hearth::model
