#include "server/front/model_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

// The model's path, then what lies in it where it is a folder; links count where they lead.
template <class Visit>
void each_file(const fs::path& model, const Visit& visit) {
  const auto look = [&](const fs::path& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0) visit(path, info);
  };
  std::error_code ignored;
  look(model);
  if (fs::is_directory(model, ignored))
    for (fs::directory_iterator it(model, ignored), end; !ignored && it != end; it.increment(ignored)) look(it->path());
}

}  // namespace

std::string files_state(const fs::path& model) {
  std::string state = model.string();
  each_file(model, [&](const fs::path& path, const struct stat& info) {
    state += fmt::format("\n{} {} {} {}.{:09}", path.filename().string(), info.st_ino, info.st_size,
                         info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  });
  return state;
}

int64_t modified_s(const fs::path& model) {
  int64_t newest = 0;
  each_file(model, [&](const fs::path&, const struct stat& info) {
    if (!S_ISDIR(info.st_mode)) newest = std::max(newest, int64_t{info.st_mtim.tv_sec});
  });
  return newest;
}

}  // namespace hearth::server
