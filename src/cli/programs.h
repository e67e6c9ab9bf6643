// Other programs: found on PATH, run to their end, or left to themselves.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hub/paths.h"

namespace hearth::cli {

// The first executable file of that name on PATH; empty: none. Entries that are not absolute do not count.
std::filesystem::path find_program(const hub::Env& env, std::string_view name);
bool is_executable(const std::filesystem::path& file);

struct ProgramEnd {
  int code = 0;        // of the shell: 128 + N after signal N
  std::string errors;  // the last 16 KiB of its standard error
};
// Runs words[0], a path, with no input; its output goes to our standard error. Throws Error{io} when it cannot be
// started.
ProgramEnd run_program(const std::vector<std::string>& words);

// Starts it in a session of its own, its standard output and error at `output` (-1: nowhere), without input. Returns
// its process id; the caller reaps it. Throws Error{io}.
pid_t start_program(const std::vector<std::string>& words, int output);

}  // namespace hearth::cli
