// A subset of TOML for our own small files (models.toml, hearth.toml, config.toml): `key = value` lines, `[table]`
// headers, comments; values are strings ("..." with \b \t \n \f \r \" \\ \uXXXX, or '...'), integers, floats, booleans
// and one-line arrays of those. Keys are bare (A-Z a-z 0-9 _ -) or quoted strings; no dotted keys, dates, inline
// tables, arrays of tables or multi-line strings: each is refused by name with its line.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth::hub {

struct TomlEntry {
  std::string table;  // "" at the top
  std::string key;
  json::Value value;
  int line = 0;  // from 1
};

// Entries in file order. Throws Error{invalid_argument} "<what>:<line>: <reason>", "<what>:<line>: <key>: <reason>" for
// a value that is none; a key given twice in a table is an error. `what` names the file. Text up to 1 MiB.
std::vector<TomlEntry> parse_toml(std::string_view text, std::string_view what);

}  // namespace hearth::hub
