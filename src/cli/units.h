// Sizes and durations as people type and read them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::cli {

// "512", "4kB", "1.5 GB", "2GiB" to bytes; nullopt when it is none, negative, or above 2^62. Units B, kB, MB, GB, TB
// (1000) and KiB, MiB, GiB, TiB (1024), case ignored, the final B optional ("4G" is 4 GB).
std::optional<int64_t> parse_size(std::string_view text);

// "250ms", "300s", "10m", "2h", "1d", "1.5" to seconds; nullopt when it is none or negative.
std::optional<double> parse_duration(std::string_view text);

std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // finite

std::string show_size(int64_t bytes);  // "98 MB", "1.5 GB": three digits at most, powers of 1000

std::string show_duration(double seconds);  // "42 s", "5 min", "3.5 h", "2.0 d"; 0 or more

}  // namespace hearth::cli
