#include "cli/commands.h"

#include <array>

namespace hearth::cli {

std::span<const Command* const> commands() {
  // clang-format off
  static constexpr std::array kCommands = {
      &kRun,
      &kGenerate,
      &kServe,
      &kPs,
      &kStop,
      &kEmbed,
      &kLaunch,
      &kTokenize,
      &kLogits,
      &kPerplexity,
      &kKl,
      &kLs,
      &kShow,
      &kFit,
      &kImport,
      &kBench,
      &kProbe,
      &kDoctor,
      &kConfig,
      &kCompletion,
      &kVersion,
      &kWorker,
  };
  // clang-format on
  return kCommands;
}

std::vector<const Command*> shown_commands() {
  std::vector<const Command*> shown;
  for (const Command* command : commands())
    if (!command->hidden) shown.push_back(command);
  return shown;
}

}  // namespace hearth::cli
