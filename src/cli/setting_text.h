// A value of a TOML file for a flag (settings.h, model_settings.h).
#pragma once
#include <string>

#include "cli/command.h"
#include "hub/toml.h"

namespace hearth::cli {

// The entry's value as one would type it behind the flag; the flag's range was checked too. `file` names the file.
// Throws Error{invalid_argument} "<file>:<line>: <key>: ...".
std::string setting_text(const std::string& file, const hub::TomlEntry& entry, const Flag& flag);

std::string with_dashes(std::string key);  // underscores in keys read as dashes

}  // namespace hearth::cli
