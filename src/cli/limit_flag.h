// --limit NAME=VALUE of `hearth serve`, which hands it on to its workers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "server/limits.h"

namespace hearth::cli {

inline constexpr Flag kLimitFlag{.name = "limit",
                                 .kind = ValueKind::text,
                                 .value = "NAME=VALUE",
                                 .help = "a bound of what clients may ask; several with commas; help: all of them",
                                 .repeat = true,
                                 .filled = true};

// The defaults with these over them; of one name the last counts. Throws Error{invalid_argument} for a name that is
// none, with the nearest one, and for a value that is none or out of range.
server::Limits read_limits(const std::vector<std::string>& texts);

bool asks_for_limits(const std::vector<std::string>& texts);  // "help" is among them
std::string limits_help();                                    // the table as text, a line each

}  // namespace hearth::cli
