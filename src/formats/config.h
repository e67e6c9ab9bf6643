// The JSON files beside a checkpoint: raw values for the room that knows architectures, and typed quantization tables
// (spec/models.md 2.2 item 6, 2.8 item 27).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth::formats {

constexpr size_t kConfigBytesMax = 1u << 20;

// A JSON object of at most kConfigBytesMax bytes. Throws Error{corrupt_file} naming `what`.
json::Value parse_config(std::string_view text, const std::string& what);

// What the table says about one module. Whether the checkpoint really holds scales is for the reader of weights.
struct QuantEntry {
  bool quantized = false;
  int bits = 0;   // 2 3 4 5 6 8
  int group = 0;  // 32 64 128
  bool operator==(const QuantEntry&) const = default;
};

class QuantTable {
 public:
  // Of a parsed config.json: `quantization`, else `quantization_config`, at the top, else in `text_config`. nullopt
  // when there is none. Fields bits, group_size, mode are defaults; every other key with an object, true or false is a
  // module. Throws Error{corrupt_file} for a wrong type, Error{invalid_argument} naming mode, method or width and the
  // supported ones.
  static std::optional<QuantTable> of(const json::Value& config, const std::string& what);

  // The module's own entry, else the defaults; `{}` where the table gives no width for it. `module` is spelled as in
  // the table (name prefixes are the caller's business).
  QuantEntry lookup(std::string_view module) const;

  const QuantEntry& defaults() const { return defaults_; }
  const std::map<std::string, QuantEntry, std::less<>>& modules() const { return modules_; }

 private:
  QuantEntry defaults_;
  std::map<std::string, QuantEntry, std::less<>> modules_;
};

// kv_config.json: layers whose KV pages are quantized; all others stay bf16.
struct KvLayer {
  int layer = 0;
  int bits = 0;   // 4 or 8
  int group = 0;  // 64
};
// In order of layer. Throws Error{corrupt_file} for wrong types, a layer given twice or beyond 65,535;
// Error{invalid_argument} for other widths.
std::vector<KvLayer> parse_kv_config(std::string_view text, const std::string& what);

}  // namespace hearth::formats
