// The words of a command line sorted into flags and positionals, values unchecked. parse.cpp is the only user of the
// command-line library.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace hearth::cli {

struct RawArgs {
  std::map<std::string, std::vector<std::string>, std::less<>> flags;  // by Flag::name; switches hold "true" or "false"
  std::vector<std::string> positionals;
  bool help = false;
};

// `words` are those after the command's name. Words after "--" are positionals; so are all behind the first one where
// the command passes them on. Throws Error{invalid_argument}: an unknown flag (with the nearest name), a flag without
// its value, a value for a switch that is not true or false.
RawArgs parse_words(const Command& command, std::span<const std::string> words);

}  // namespace hearth::cli
