// Files of the formats made by hand, well-formed or not; field positions are kept for mutators.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/outcome.h"

namespace hearth::test {

inline std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// GGUF bytes, field by field. Counts may lie: they are what the caller says.
class GgufBytes {
 public:
  struct Field {
    size_t at;
    int bytes;
  };

  explicit GgufBytes(uint64_t tensors = 0, uint64_t keys = 0, uint32_t version = 3) {
    text = "GGUF";
    number<uint32_t>(version);
    number<uint64_t>(tensors);
    number<uint64_t>(keys);
  }

  template <class T>
  GgufBytes& number(T value) {
    fields.push_back({text.size(), sizeof value});
    put(text, value);
    return *this;
  }
  GgufBytes& string(std::string_view s) {
    number<uint64_t>(s.size());
    text += s;
    return *this;
  }
  GgufBytes& key(std::string_view name, uint32_t type) { return string(name).number<uint32_t>(type); }
  template <class T>
  GgufBytes& scalar(std::string_view name, uint32_t type, T value) {
    return key(name, type).number(value);
  }
  GgufBytes& array(std::string_view name, uint32_t element, uint64_t count) {
    return key(name, 9).number<uint32_t>(element).number<uint64_t>(count);
  }
  GgufBytes& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    string(name).number<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (const uint64_t d : dims) number<uint64_t>(d);
    return number<uint32_t>(type).number<uint64_t>(offset);
  }
  // Pads to the data section and appends `size` bytes of it.
  GgufBytes& data(size_t size, size_t alignment = 32) {
    while (text.size() % alignment != 0) text += '\0';
    text.append(size, '\x3c');
    return *this;
  }

  std::string text;
  std::vector<Field> fields;
};

// A small file with every kind of value and tensors of several types.
inline GgufBytes sample_gguf() {
  GgufBytes file(4, 10);
  file.key("general.architecture", 8).string("llama");
  file.scalar<uint32_t>("general.alignment", 4, 32);
  file.scalar<float>("a.eps", 6, 1e-5f);
  file.scalar<uint8_t>("a.flag", 7, 1);
  file.scalar<uint64_t>("a.big", 10, uint64_t{1} << 40);
  file.scalar<int16_t>("a.small", 3, -7);
  file.array("a.tokens", 8, 3).string("<s>").string("").string("the");
  file.array("a.scores", 6, 2).number(1.5f).number(-2.0f);
  file.array("a.types", 5, 3).number<int32_t>(1).number<int32_t>(2).number<int32_t>(-3);
  file.scalar<double>("a.wide", 12, 0.125);
  file.tensor("norm", {8}, 0, 0);
  file.tensor("q4", {64, 3}, 3, 32);  // Q4_1: 3 rows of 40 bytes
  file.tensor("half", {4, 2, 2}, 1, 160);
  file.tensor("k", {256}, 12, 192);  // Q4_K: 144 bytes
  file.data(192 + 144);
  return file;
}

// safetensors bytes: header length, header, data.
inline std::string safetensors(std::string_view header, size_t data_bytes) {
  std::string file;
  put<uint64_t>(file, header.size());
  file += header;
  file.append(data_bytes, '\x3c');
  return file;
}

// Least CPU time of five calls in ms: a busy machine does not lengthen it. Sanitizers do, by up to kSanitizerFactor.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSanitizerFactor = 30;
#else
constexpr double kSanitizerFactor = 1;
#endif
template <class Call>
double cpu_ms(const Call& call) {
  double best = 1e9;
  for (int trial = 0; trial < 5; ++trial) {
    const std::clock_t start = std::clock();
    call();
    best = std::min(best, 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

}  // namespace hearth::test
