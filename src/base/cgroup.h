// Limits that the kernel's control groups put on this process.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace hearth {

// The smallest memory limit in bytes of this process's control groups and all above them (v2 and v1); nullopt without
// one. `proc` and `sys` stand for /proc and /sys; tests pass others. Any thread.
std::optional<int64_t> cgroup_memory_limit(const std::filesystem::path& proc = "/proc",
                                           const std::filesystem::path& sys = "/sys");

}  // namespace hearth
