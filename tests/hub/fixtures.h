// The smallest files that the store takes for models, and an environment of the test's own.
#pragma once
#include <map>
#include <string>

#include "hub/paths.h"

namespace hearth::test {

inline hub::Env fixed_env(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

// The smallest GGUF: no tensors, one key general.name = `name`.
inline std::string tiny_gguf(const std::string& name) {
  const auto u32 = [](uint32_t v) { return std::string(reinterpret_cast<const char*>(&v), 4); };
  const auto u64 = [](uint64_t v) { return std::string(reinterpret_cast<const char*>(&v), 8); };
  const std::string key = "general.name";
  std::string bytes = "GGUF" + u32(3) + u64(0) + u64(1) + u64(key.size()) + key + u32(8) + u64(name.size()) + name;
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes;
}

// One F32 tensor "x" of one element.
inline std::string tiny_safetensors() {
  std::string header = R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(4, '\0');
}

}  // namespace hearth::test
