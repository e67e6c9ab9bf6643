// `hearth serve --detach`: the same server in the background.
#pragma once
#include "cli/context.h"

namespace hearth::cli {

// Starts `hearth serve` with the flags of this command line, in a session of its own, with its log in a file; waits
// until it answers, and prints its address. Returns the exit code of a server that ended instead, whose last words are
// shown.
int serve_detached(const Context& context);

}  // namespace hearth::cli
