#include "cpu/pack_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace hearth::cpu {
namespace {

constexpr int64_t kSpare = 500'000'000;  // bytes of the file system that others keep

std::vector<std::filesystem::path> temporaries(io::Fs& fs, const std::filesystem::path& dir) {
  std::vector<std::filesystem::path> paths;
  for (const io::Entry& entry : fs.list(dir))
    if (!entry.is_dir && io::is_temporary(entry.name, kPackedSuffix)) paths.push_back(dir / entry.name);
  return paths;
}

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

io::FolderUse use_packed(io::Fs& fs, const std::filesystem::path& dir) {
  return io::FolderUse(dir, [&] {
    for (const std::filesystem::path& path : temporaries(fs, dir)) fs.remove(path);
  });
}

int64_t count_leftovers(io::Fs& fs, const std::filesystem::path& dir) {
  int64_t count = 0;
  io::if_unused(dir, [&] { count = static_cast<int64_t>(temporaries(fs, dir).size()); });
  return count;
}

void make_room(io::Fs& fs, const std::filesystem::path& path, int64_t bytes, int64_t bytes_max) {
  if (bytes > bytes_max)
    fail(ErrorKind::io, "{}: {} bytes, --pack-cache allows {} for all models", path.string(), bytes, bytes_max);
  const std::filesystem::path dir = path.parent_path();
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
