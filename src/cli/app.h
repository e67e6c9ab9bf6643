// Entry of the command line.
#pragma once

namespace hearth::cli {

// Parses argv, runs the command, prints errors to stderr; returns the process exit code (spec dependencies 5.1).
int run(int argc, char** argv);

}  // namespace hearth::cli
