// A safetensors file written tensor by tensor.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace hearth::test {

class SafetensorsFile {
 public:
  void add(std::string_view name, std::string_view dtype, std::span<const int64_t> shape,
           std::span<const std::byte> bytes) {
    std::string dims;
    for (const int64_t d : shape) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", d);
    header_ += fmt::format("{}\"{}\": {{\"dtype\": \"{}\", \"shape\": [{}], \"data_offsets\": [{}, {}]}}",
                           header_.empty() ? "" : ", ", name, dtype, dims, data_.size(), data_.size() + bytes.size());
    data_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // Values rounded to `type`: f32, f16 or bf16.
  void add(std::string_view name, DType type, const std::vector<int64_t>& shape, std::span<const float> values) {
    std::vector<std::byte> bytes;
    for (const float v : values) {
      const auto put = [&](auto x) {
        const size_t at = bytes.size();
        bytes.resize(at + sizeof x);
        std::memcpy(bytes.data() + at, &x, sizeof x);
      };
      if (type == DType::f32) put(v);
      else put(type == DType::bf16 ? to_bf16(v).bits : to_f16(v).bits);
    }
    add(name, type == DType::f32 ? "F32" : type == DType::bf16 ? "BF16" : "F16", shape, bytes);
  }

  std::string bytes() const {
    std::string header = "{" + header_ + "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t size = header.size();
    return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data_;
  }

 private:
  std::string header_, data_;
};

}  // namespace hearth::test
