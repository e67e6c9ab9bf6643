#include "cpu/pack_folder.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace hearth::cpu {
namespace {

constexpr int64_t kSpare = 500'000'000;  // bytes of the file system that others keep

// The process in ".<name>.packed.<pid>-<n>.tmp", the temporary of an io::AtomicFile.
std::optional<pid_t> writer_of(std::string_view name) {
  constexpr std::string_view kEnd = ".tmp";
  const size_t at = name.find(std::string(kPackedSuffix) + ".");
  if (!name.starts_with('.') || !name.ends_with(kEnd) || at == std::string_view::npos) return std::nullopt;
  const char* begin = name.data() + at + kPackedSuffix.size() + 1;
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), pid);
  if (error != std::errc() || *end != '-' || pid <= 0) return std::nullopt;
  return pid;
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

struct Packed {
  std::filesystem::path path;
  int64_t bytes = 0;
  struct timespec used{};
};

bool older(const Packed& a, const Packed& b) {
  return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
}

int64_t bytes_free(const std::filesystem::path& dir) {
  std::error_code error;
  const std::filesystem::space_info info = std::filesystem::space(dir, error);
  return error ? INT64_MAX : static_cast<int64_t>(std::min<uintmax_t>(info.available, INT64_MAX));
}

}  // namespace

int64_t leftovers(io::Fs& fs, const std::filesystem::path& dir, Leftovers what) {
  int64_t count = 0;
  if (!fs.exists(dir)) return 0;
  for (const io::Entry& entry : fs.list(dir)) {
    const std::optional<pid_t> pid = writer_of(entry.name);
    if (entry.is_dir || !pid || is_alive(*pid)) continue;
    ++count;
    if (what == Leftovers::remove) fs.remove(dir / entry.name);
  }
  return count;
}

void make_room(io::Fs& fs, const std::filesystem::path& path, int64_t bytes, int64_t bytes_max) {
  if (bytes > bytes_max)
    fail(ErrorKind::io, "{}: {} bytes, --pack-cache allows {} for all models", path.string(), bytes, bytes_max);
  const std::filesystem::path dir = path.parent_path();
  leftovers(fs, dir, Leftovers::remove);
  std::vector<Packed> files;
  int64_t held = 0, replaced = 0;
  for (const io::Entry& entry : fs.list(dir)) {
    struct stat info{};
    const std::filesystem::path file = dir / entry.name;
    if (entry.is_dir || !entry.name.ends_with(kPackedSuffix) || ::stat(file.c_str(), &info) != 0) continue;
    if (file == path) {
      replaced = info.st_size;
      continue;
    }
    files.push_back({file, info.st_size, info.st_mtim});
    held += info.st_size;
  }
  std::sort(files.begin(), files.end(), older);
  for (const Packed& file : files) {
    if (held + bytes <= bytes_max && bytes_free(dir) >= bytes + kSpare) return;
    fs.remove(file.path);
    held -= file.bytes;
    log::info("cpu", "{} was used longest ago and made room for other packed weights", file.path.string());
  }
  if (const int64_t free = bytes_free(dir); free < bytes + kSpare)
    fail(ErrorKind::io, "{}: {} bytes are free on its file system, {} and {} to spare are needed{}", dir.string(), free,
         bytes, kSpare, replaced > 0 ? " beside the file that is replaced" : "");
}

}  // namespace hearth::cpu
