#include "cli/commands.h"

#include <array>

namespace hearth::cli {

std::span<const Command* const> commands() {
  static constexpr std::array kCommands = {
      &kLs, &kImport, &kConfig, &kCompletion, &kVersion,
  };
  return kCommands;
}

}  // namespace hearth::cli
