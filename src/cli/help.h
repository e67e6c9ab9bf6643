// Help texts from the command tables. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace hearth::cli {

std::string help_overview();                   // `hearth --help`
std::string help_of(const Command& command);   // `hearth VERB --help`
std::string usage_of(const Command& command);  // "hearth import PATH [flags]"

std::vector<std::string> split_words(std::string_view text);  // at blanks

}  // namespace hearth::cli
