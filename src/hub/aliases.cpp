#include "hub/aliases.h"

#include "base/error.h"
#include "base/fs.h"
#include "hub/toml.h"

namespace hearth::hub {

std::vector<Alias> read_aliases(const std::filesystem::path& file, const std::string& name) {
  std::vector<Alias> aliases;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return aliases;
  const std::string what = file.string();
  for (const TomlEntry& entry : parse_toml(io::real_fs().read_file(file, size_t{1} << 20), what)) {
    const bool at_top = entry.table.empty();
    if (!at_top && entry.key != "alias") continue;
    const std::string* value = entry.value.string();
    const bool is_asked = name.empty() || (at_top ? entry.key == name : value && *value == name);
    if (!is_asked) continue;
    if (!value || value->empty())
      fail(ErrorKind::invalid_argument, "{}:{}: {}: expected {} as a string, found {}", what, entry.line, entry.key,
           at_top ? "a model's name" : "a name", value ? "an empty one" : entry.value.type_name());
    aliases.push_back({at_top ? entry.key : *value, at_top ? *value : entry.table, entry.line});
  }
  return aliases;
}

}  // namespace hearth::hub
