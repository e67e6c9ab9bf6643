#include "formats/config.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "tensor/packed.h"

namespace hearth::formats {
namespace {

constexpr std::string_view kTableNames[] = {"quantization", "quantization_config"};

struct Table {
  const json::Value* value = nullptr;
  std::string name;
};

Table find_table(const json::Value& config) {
  for (const std::string_view name : kTableNames)
    if (const json::Value* value = config.get(name)) return {value, std::string(name)};
  if (const json::Value* text = config.get("text_config"))
    for (const std::string_view name : kTableNames)
      if (const json::Value* value = text->get(name)) return {value, fmt::format("text_config.{}", name)};
  return {};
}

void require_affine(const json::Value& entry, const std::string& where) {
  const json::Value* mode = entry.get("mode");
  if (!mode) return;
  const std::string& name = mode->as_string(where + ".mode");
  if (name != "affine")
    fail(ErrorKind::invalid_argument, "{}: mode {} is not supported; supported is affine", where, printable(name));
}

// bits and group_size of an entry over those that it inherits.
QuantEntry read_entry(const json::Value& entry, const QuantEntry& inherited, const std::string& where) {
  require_affine(entry, where);
  QuantEntry out = inherited;
  if (const json::Value* bits = entry.get("bits")) {
    const int64_t n = bits->as_int(where + ".bits");
    if (!is_affine_width(n))
      fail(ErrorKind::invalid_argument, "{}: bits {} are not supported; supported are 2 3 4 5 6 8", where, n);
    out.bits = static_cast<int>(n);
  }
  if (const json::Value* group = entry.get("group_size")) {
    const int64_t n = group->as_int(where + ".group_size");
    if (!is_affine_group(n))
      fail(ErrorKind::invalid_argument, "{}: group_size {} is not supported; supported are 32 64 128", where, n);
    out.group = static_cast<int>(n);
  }
  out.quantized = out.bits != 0 && out.group != 0;
  return out;
}

}  // namespace

json::Value parse_config(std::string_view text, const std::string& what) {
  json::Value value = json::parse(text, what, {.bytes_max = kConfigBytesMax});
  value.as_object(what);
  return value;
}

std::optional<QuantTable> QuantTable::of(const json::Value& config, const std::string& what) {
  const Table found = find_table(config);
  if (!found.value) return std::nullopt;
  const std::string where = fmt::format("{}: {}", what, found.name);
  const json::Object& object = found.value->as_object(where);

  if (const json::Value* method = found.value->get("quant_method")) {
    const std::string& name = method->as_string(where + ".quant_method");
    if (name != "mlx" && name != "affine")
      fail(ErrorKind::invalid_argument, "{}: quant_method {} is not supported; supported is affine (MLX)", where,
           printable(name));
  }
  QuantTable table;
  table.defaults_ = read_entry(*found.value, {}, where);
  for (const auto& [key, value] : object) {
    if (key == "bits" || key == "group_size" || key == "mode") continue;
    if (value.is_object()) {
      const std::string entry_where = fmt::format("{}[{}]", where, printable(key));
      const QuantEntry entry = read_entry(value, table.defaults_, entry_where);
      if (!entry.quantized)
        fail(ErrorKind::corrupt_file, "{}: neither the entry nor the defaults give bits and group_size", entry_where);
      table.modules_[key] = entry;
    } else if (value.is_bool()) {
      table.modules_[key] = value.as_bool(where) ? table.defaults_ : QuantEntry{};
    }
    // Anything else is a remark of the tool that wrote the table: it cannot give a module its width.
  }
  return table;
}

QuantEntry QuantTable::lookup(std::string_view module) const {
  const auto at = modules_.find(module);
  return at != modules_.end() ? at->second : defaults_;
}

std::vector<KvLayer> parse_kv_config(std::string_view text, const std::string& what) {
  constexpr int64_t kLayersMax = 65'536;
  const json::Value value = json::parse(text, what, {.bytes_max = kConfigBytesMax});
  std::vector<KvLayer> layers;
  size_t i = 0;
  for (const json::Value& item : value.as_array(what)) {
    const std::string where = fmt::format("{}[{}]", what, i++);
    item.as_object(where);
    const auto number = [&](const char* field) {
      const json::Value* v = item.get(field);
      if (!v) fail(ErrorKind::corrupt_file, "{}: {} is absent", where, field);
      return v->as_int(fmt::format("{}.{}", where, field));
    };
    const int64_t layer = number("layer_idx"), bits = number("bits"), group = number("group_size");
    if (layer < 0 || layer >= kLayersMax)
      fail(ErrorKind::corrupt_file, "{}: layer_idx {} is outside 0 .. {}", where, layer, kLayersMax - 1);
    if ((bits != 4 && bits != 8) || group != 64)
      fail(ErrorKind::invalid_argument, "{}: bits {} with group_size {}; supported are bits 4 8 with group_size 64",
           where, bits, group);
    layers.push_back({static_cast<int>(layer), static_cast<int>(bits), static_cast<int>(group)});
  }
  std::ranges::sort(layers, {}, &KvLayer::layer);
  const auto twice = std::ranges::adjacent_find(layers, {}, &KvLayer::layer);
  if (twice != layers.end()) fail(ErrorKind::corrupt_file, "{}: layer_idx {} occurs twice", what, twice->layer);
  return layers;
}

}  // namespace hearth::formats
