#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace hearth {
namespace {

std::optional<int64_t> limit_in(const std::filesystem::path& path) {
  int64_t bytes = 0;
  std::ifstream file(path);
  // "max" does not parse; cgroup v1 writes "no limit" as a number near 2^63.
  if (!(file >> bytes) || bytes <= 0 || bytes >= (int64_t{1} << 60)) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<int64_t> cgroup_memory_limit(const std::filesystem::path& proc, const std::filesystem::path& sys) {
  std::optional<int64_t> least;
  std::ifstream lines(proc / "self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const bool v2 = line.starts_with("0::");
    if (!v2 && line.find(":memory:") == std::string::npos) continue;
    const std::filesystem::path root = sys / (v2 ? "fs/cgroup" : "fs/cgroup/memory");
    const char* name = v2 ? "memory.max" : "memory.limit_in_bytes";
    // Every group up to the root may set a limit.
    for (std::filesystem::path group = line.substr(line.rfind(':') + 1);; group = group.parent_path()) {
      if (const auto limit = limit_in(root / group.relative_path() / name))
        least = std::min(least.value_or(*limit), *limit);
      if (!group.has_relative_path()) break;
    }
  }
  return least;
}

}  // namespace hearth
