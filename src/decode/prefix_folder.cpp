#include "decode/prefix_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace hearth::decode {
namespace {

// What io::AtomicFile calls the temporary of a stored prefix: ".<name>.hkv.<pid>-<n>.tmp".
bool is_temporary(std::string_view name) {
  return name.starts_with('.') && name.ends_with(".tmp") && name.find(kPrefixSuffix) != std::string_view::npos;
}

// Calls each(folder, name) for every file of a model.
void each_file(io::Fs& fs, const std::filesystem::path& model,
               const std::function<void(const std::filesystem::path& dir, const std::string& name)>& each) {
  for (const io::Entry& space : fs.list(model)) {
    if (!space.is_dir) continue;
    for (const io::Entry& file : fs.list(model / space.name))
      if (!file.is_dir) each(model / space.name, file.name);
  }
}

void remove_temporaries(io::Fs& fs, const std::filesystem::path& model) {
  each_file(fs, model, [&](const std::filesystem::path& dir, const std::string& name) {
    if (!is_temporary(name)) return;
    fs.remove(dir / name);
    log::info("decode", "{} was left by a process that was killed, and is removed", (dir / name).string());
  });
}

int open_folder(const std::filesystem::path& dir) { return ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

int lock(int descriptor, int how) {
  int failed = 0;
  while ((failed = ::flock(descriptor, how)) != 0 && errno == EINTR) {
  }
  return failed;
}

}  // namespace

PrefixFolder::PrefixFolder(io::Fs& fs, const std::filesystem::path& root, const std::string& model) {
  for (const io::Entry& entry : fs.list(root)) {
    if (!entry.is_dir) continue;
    const int descriptor = open_folder(root / entry.name);
    if (descriptor < 0) continue;  // it is another one's, or it has gone
    const bool unused = lock(descriptor, LOCK_EX | LOCK_NB) == 0;
    try {
      if (unused) remove_temporaries(fs, root / entry.name);
    } catch (const Error& error) {
      log::warn("decode", "{}", error.what());
    }
    // Two who start at once may both be here: one cleans, nobody has written yet, the other waits for it.
    if (entry.name == model && lock(descriptor, LOCK_SH) == 0) descriptor_ = descriptor;
    else ::close(descriptor);
  }
  if (descriptor_ < 0)
    log::info("decode", "{}: it cannot be locked, so what killed processes leave there stays", (root / model).string());
}

PrefixFolder::~PrefixFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void make_prefix_room(io::Fs& fs, const std::filesystem::path& root, int64_t bytes, int64_t bytes_max,
                      const std::function<void(const std::filesystem::path& path)>& removed) {
  struct Stored {
    std::filesystem::path path;
    int64_t bytes;
    int64_t used_ns;
  };
  std::vector<Stored> files;
  int64_t total = 0;
  for (const io::Entry& model : fs.list(root)) {
    if (!model.is_dir) continue;
    each_file(fs, root / model.name, [&](const std::filesystem::path& dir, const std::string& name) {
      struct stat info{};
      if (!name.ends_with(kPrefixSuffix) || ::stat((dir / name).c_str(), &info) != 0) return;
      files.push_back({dir / name, info.st_size, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec});
      total += info.st_size;
    });
  }
  if (bytes > bytes_max) fail(ErrorKind::io, "{} bytes, the cap is {}", bytes, bytes_max);
  std::ranges::sort(files, {}, &Stored::used_ns);
  for (const Stored& file : files) {
    if (total + bytes <= bytes_max) return;
    fs.remove(file.path);
    total -= file.bytes;
    removed(file.path);
  }
}

}  // namespace hearth::decode
