// Standard error as a file of bounded size (reliability.md section 3): this process's and that of its children.
#pragma once
#include <cstdint>
#include <filesystem>

namespace hearth::cli {

inline constexpr int64_t kLogFileBytesMax = 64 << 20;

// Puts the file, which is made with mode 0600 or goes on, in the place of descriptor `fd`. Throws Error{io}.
void log_to(const std::filesystem::path& file, int fd);

// Where the file behind `fd` has more than bytes_max: its content becomes `file`.1, in place of an older one, and it
// begins anew, for all who write to it. What is written meanwhile may be lost. Returns whether it did. Throws
// Error{io}.
bool rotate_log(const std::filesystem::path& file, int fd, int64_t bytes_max = kLogFileBytesMax);

}  // namespace hearth::cli
