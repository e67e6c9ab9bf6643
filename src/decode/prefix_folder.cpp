#include "decode/prefix_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace hearth::decode {
namespace {

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
    if (!io::is_temporary(name, kPrefixSuffix)) return;
    fs.remove(dir / name);
    log::info("decode", "{} was left by a process that was killed, and is removed", (dir / name).string());
  });
}

}  // namespace

PrefixFolder::PrefixFolder(io::Fs& fs, const std::filesystem::path& root, const std::string& model) {
  for (const io::Entry& entry : fs.list(root)) {
    if (!entry.is_dir) continue;
    const auto clean = [&] {
      try {
        remove_temporaries(fs, root / entry.name);
      } catch (const Error& error) {
        log::warn("decode", "{}", error.what());
      }
    };
    if (entry.name == model) use_.emplace(root / entry.name, clean);
    else io::if_unused(root / entry.name, clean);
  }
  if (!use_ || !use_->is_held())
    log::info("decode", "{}: it cannot be locked, so what killed processes leave there stays", (root / model).string());
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
