// The folder of packed weights: what it may hold, and what is left behind in it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/fs.h"

namespace hearth::cpu {

inline constexpr std::string_view kPackedSuffix = ".packed";

// Before `bytes` are written to `path`: removes temporaries of processes that have ended, then the packed files of its
// folder that were used longest ago (by modification time, `path` itself apart) until the new one fits below bytes_max
// with them, and until the file system holds it. Other files stay. Throws Error{io} with both numbers when it does not
// fit all the same.
void make_room(io::Fs& fs, const std::filesystem::path& path, int64_t bytes, int64_t bytes_max);

// Removes (or counts) temporaries of processes that have ended; an absent folder has none.
enum class Leftovers { remove, count };
int64_t leftovers(io::Fs& fs, const std::filesystem::path& dir, Leftovers what);

}  // namespace hearth::cpu
