// Defaults from files: hearth.toml of the working folder, config.toml of the user. `flag-name = value` at the top holds
// for every command that has the flag, in a `[command]` table for that command alone (and wins there).
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "hub/paths.h"
#include "hub/toml.h"

namespace hearth::cli {

struct SettingsFile {
  std::string name;  // for messages: "hearth.toml", "/home/me/.config/hearth/config.toml"
  std::vector<hub::TomlEntry> entries;
};

struct Settings {
  SettingsFile project, user;  // no entries where the file does not exist
};

// The working folder; empty where it was deleted: there is no hearth.toml in it then.
std::filesystem::path working_folder();

// Throws Error{invalid_argument} naming file and line for a malformed file, Error{io} for one that cannot be read.
Settings load_settings(const std::filesystem::path& folder, const hub::Env& env);

struct FoundSetting {
  std::vector<std::string> texts;  // numbers and booleans as one would type them
  std::string key;                 // as the file spells it
  int line = 0;
};
// The file's value for the command's flag; nullopt when it has none. Underscores in keys read as dashes. Throws
// Error{invalid_argument} "<file>:<line>: <key>: expected <..>, found <..>" for a value of another type than the
// flag's.
std::optional<FoundSetting> find_setting(const SettingsFile& file, const Command& command, const Flag& flag);

// One sentence for every key that no command knows: file, line, nearest name.
std::vector<std::string> unknown_settings(const SettingsFile& file);

}  // namespace hearth::cli
