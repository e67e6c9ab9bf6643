// The text that perplexity and kl run on.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/context.h"

namespace hearth::cli {

inline constexpr Flag kDataFlag{.name = "data",
                                .kind = ValueKind::file,
                                .value = "FILE",
                                .help = "a .txt file, or .jsonl with a field text",
                                .aliases = "--data-path"};

// Documents of --data. Throws Error{invalid_argument} without the flag, and as eval::read_documents does.
std::vector<std::string> read_data(const Context& context);

}  // namespace hearth::cli
