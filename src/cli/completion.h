// Completion scripts from the command table. Pure.
#pragma once
#include <string>

namespace hearth::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace hearth::cli
