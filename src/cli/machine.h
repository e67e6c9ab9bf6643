// Facts of the machine that hearth runs on, read from /proc and /sys.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {

struct MemoryInfo {
  int64_t total = 0, available = 0, swap_total = 0, swap_free = 0;  // bytes
  int64_t huge_pages_free = 0;
};
// Of the text of /proc/meminfo. Absent rows are 0.
MemoryInfo parse_meminfo(std::string_view text);
MemoryInfo memory_info();

// The chosen word of "always [madvise] never"; empty when there is none.
std::string chosen_word(std::string_view text);

struct CpuInfo {
  std::string model;
  int online = 0, allowed = 0;  // CPUs of the machine, and of this process's affinity mask
};
CpuInfo cpu_info();

std::string filesystem_type(const std::filesystem::path& path);  // "ext4", "nfs", "0x..." for an unknown one
bool is_network_filesystem(std::string_view type);

}  // namespace hearth::cli
