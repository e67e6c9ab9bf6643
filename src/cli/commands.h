// The rows of the command table, one file each in cli/commands/.
#pragma once
#include "cli/command.h"

namespace hearth::cli {

extern const Command kCompletion;
extern const Command kConfig;
extern const Command kImport;
extern const Command kLs;
extern const Command kVersion;

}  // namespace hearth::cli
