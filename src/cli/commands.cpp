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

}  // namespace hearth::cli
