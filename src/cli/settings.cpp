#include "cli/settings.h"

#include <algorithm>

#include "base/error.h"
#include "base/fs.h"
#include "cli/args.h"
#include "cli/setting_text.h"
#include "hub/nearest.h"

namespace hearth::cli {
namespace fs = std::filesystem;
namespace {

SettingsFile load(const fs::path& path, const std::string& name) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {name, {}};
  return {name, hub::parse_toml(io::real_fs().read_file(path, size_t{1} << 20), name)};
}

std::string_view expected(ValueKind kind) {
  switch (kind) {
    case ValueKind::none: return "true or false";
    case ValueKind::text:
    case ValueKind::file:
    case ValueKind::choice: return "a string";
    case ValueKind::integer: return "an integer";
    case ValueKind::number: return "a number";
    case ValueKind::size: return "a size (a number of bytes, or a string such as \"4GB\")";
    case ValueKind::duration: return "a duration (a number of seconds, or a string such as \"10m\")";
  }
  return "a value";
}

bool fits(ValueKind kind, const json::Value& value) {
  switch (kind) {
    case ValueKind::none: return value.is_bool();
    case ValueKind::text:
    case ValueKind::file:
    case ValueKind::choice: return value.is_string();
    case ValueKind::integer: return value.is_int();
    case ValueKind::number: return value.is_number();
    case ValueKind::size:
    case ValueKind::duration: return value.is_number() || value.is_string();
  }
  return false;
}

// What a value is, for an error; a number is told itself: 1.5 where an integer is expected.
std::string shown(const json::Value& value) {
  return value.is_number() ? json::dump(value) : std::string(value.type_name());
}

void require_kind(const std::string& file, const hub::TomlEntry& entry, const Flag& flag, const json::Value& value) {
  if (!fits(flag.kind, value))
    fail(ErrorKind::invalid_argument, "{}:{}: {}: expected {}{}, found {}", file, entry.line, entry.key,
         expected(flag.kind), flag.repeat ? " or an array of those" : "", shown(value));
}

// A value of the file as one would type it behind the flag.
std::string typed(const json::Value& value) {
  if (const std::string* text = value.string()) return *text;
  return json::dump(value);
}

}  // namespace

std::string with_dashes(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

fs::path working_folder() {
  std::error_code gone;
  return fs::current_path(gone);
}

Settings load_settings(const fs::path& folder, const hub::Env& env) {
  const fs::path user = hub::config_folder(env) / "config.toml";
  return {load(folder / "hearth.toml", "hearth.toml"), load(user, user.string())};
}

std::optional<FoundSetting> find_setting(const SettingsFile& file, const Command& command, const Flag& flag) {
  const hub::TomlEntry* best = nullptr;
  for (const hub::TomlEntry& entry : file.entries) {
    if (with_dashes(entry.key) != flag.name) continue;
    if (entry.table == command.name || (entry.table.empty() && !best)) best = &entry;
  }
  if (!best) return std::nullopt;
  FoundSetting found{{}, best->key, best->line};
  const auto add = [&](const json::Value& value) {
    require_kind(file.name, *best, flag, value);
    found.texts.push_back(typed(value));
  };
  if (const json::Array* items = best->value.array(); items && flag.repeat)
    for (const json::Value& item : *items) add(item);
  else add(best->value);
  return found;
}

std::string setting_text(const std::string& file, const hub::TomlEntry& entry, const Flag& flag) {
  require_kind(file, entry, flag, entry.value);
  const std::string text = typed(entry.value);
  check_value(flag, text, fmt::format("{}:{}: {}", file, entry.line, entry.key));
  return text;
}

std::vector<std::string> unknown_settings(const SettingsFile& file) {
  std::vector<std::string> sentences;
  for (const hub::TomlEntry& entry : file.entries) {
    bool known = false, known_table = entry.table.empty();
    std::vector<std::string> names, tables;
    const auto look = [&](const Flag& flag) {
      if (flag.name == "help") return;
      names.emplace_back(flag.name);
      known |= names.back() == with_dashes(entry.key);
    };
    for (const Command* command : shown_commands()) {
      tables.emplace_back(command->name);
      if (!entry.table.empty() && entry.table != command->name) continue;
      known_table = true;
      for (const Flag& flag : command->flags) look(flag);
      for (const Flag& flag : common_flags()) look(flag);
    }
    if (known) continue;
    const std::vector<std::string> near =
        known_table ? hub::nearest(with_dashes(entry.key), names, 1) : hub::nearest(entry.table, tables, 1);
    sentences.push_back(fmt::format("{}:{}: unknown {} '{}'{}", file.name, entry.line,
                                    known_table ? "setting" : "table", known_table ? entry.key : entry.table,
                                    near.empty() ? "" : fmt::format("; did you mean {}?", near[0])));
  }
  return sentences;
}

}  // namespace hearth::cli
