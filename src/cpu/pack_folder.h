// The folder of packed weights: what it may hold, and what is left behind in it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/folder_use.h"
#include "base/fs.h"

namespace hearth::cpu {

inline constexpr std::string_view kPackedSuffix = ".packed";

// This process as one that writes to dir, which must be there; to be kept until its file has its name. If no other one
// writes, temporaries are those of killed processes, and are removed first. Throws Error{io}.
io::FolderUse use_packed(io::Fs& fs, const std::filesystem::path& dir);

// Temporaries of killed processes; 0 for an absent folder, and while somebody writes there.
int64_t count_leftovers(io::Fs& fs, const std::filesystem::path& dir);

// Before `bytes` are written to `path`: removes the packed files of its folder that were used longest ago (by
// modification time, `path` itself apart) until the new one fits below bytes_max with them, and until the file system
// holds it. Other files stay. Throws Error{io} with both numbers when it does not fit all the same.
void make_room(io::Fs& fs, const std::filesystem::path& path, int64_t bytes, int64_t bytes_max);

}  // namespace hearth::cpu
