#include "cli/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/units.h"

namespace hearth::cli {
namespace fs = std::filesystem;
namespace {

// Files of /proc and /sys have no size: read until the end.
std::string slurp(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

MemoryInfo parse_meminfo(std::string_view text) {
  MemoryInfo info;
  const auto row = [&](std::string_view name) -> int64_t {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      at = end + 1;
      if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
      line.remove_prefix(name.size() + 1);
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      const int64_t value = parse_integer(line.substr(0, line.find(' '))).value_or(0);
      return line.ends_with("kB") ? value * 1024 : value;
    }
    return 0;
  };
  info.total = row("MemTotal");
  info.available = row("MemAvailable");
  info.swap_total = row("SwapTotal");
  info.swap_free = row("SwapFree");
  info.huge_pages_free = row("HugePages_Free");
  return info;
}

MemoryInfo memory_info() { return parse_meminfo(slurp("/proc/meminfo")); }

std::string chosen_word(std::string_view text) {
  const size_t begin = text.find('['), end = text.find(']');
  if (begin == text.npos || end == text.npos || end < begin) return "";
  return std::string(text.substr(begin + 1, end - begin - 1));
}

CpuInfo cpu_info() {
  CpuInfo info;
  std::istringstream lines(slurp("/proc/cpuinfo"));
  for (std::string line; std::getline(lines, line) && info.model.empty();)
    if (line.starts_with("model name")) info.model = line.substr(std::min(line.find(':') + 2, line.size()));
  info.online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  info.allowed = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : info.online;
  return info;
}

std::string filesystem_type(const fs::path& path) {
  struct statfs info{};
  if (::statfs(path.c_str(), &info) != 0) return "";
  static constexpr std::array<std::pair<unsigned, std::string_view>, 14> kTypes = {{
      {0xEF53, "ext4"},
      {0x58465342, "xfs"},
      {0x9123683E, "btrfs"},
      {0x01021994, "tmpfs"},
      {0x794C7630, "overlay"},
      {0x6969, "nfs"},
      {0xFF534D42, "cifs"},
      {0xFE534D42, "smb2"},
      {0x65735546, "fuse"},
      {0x2FC12FC1, "zfs"},
      {0xF2F52010, "f2fs"},
      {0x4D44, "vfat"},
      {0x01021997, "9p"},
      {0x00C36400, "ceph"},
  }};
  for (const auto& [magic, name] : kTypes)
    if (static_cast<unsigned>(info.f_type) == magic) return std::string(name);
  return fmt::format("{:#x}", static_cast<unsigned>(info.f_type));
}

bool is_network_filesystem(std::string_view type) {
  static const std::set<std::string_view> kNetwork = {"nfs", "cifs", "smb2", "9p", "ceph"};
  return kNetwork.contains(type);
}

}  // namespace hearth::cli
