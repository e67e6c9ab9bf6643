// The rows of the command table, one file each in cli/commands/.
#pragma once
#include "cli/command.h"

namespace hearth::cli {

extern const Command kBench;
extern const Command kCompletion;
extern const Command kConfig;
extern const Command kDoctor;
extern const Command kEmbed;
extern const Command kFit;
extern const Command kGenerate;
extern const Command kImport;
extern const Command kKl;
extern const Command kLaunch;
extern const Command kLogits;
extern const Command kLs;
extern const Command kPerplexity;
extern const Command kProbe;
extern const Command kPs;
extern const Command kRun;
extern const Command kServe;
extern const Command kShow;
extern const Command kStop;
extern const Command kTokenize;
extern const Command kVersion;
extern const Command kWorker;

}  // namespace hearth::cli
