#include "server/front/adapter_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "base/error.h"
#include "formats/adapter.h"
#include "server/request_error.h"

namespace hearth::server {
namespace fs = std::filesystem;
namespace {

struct Opened {
  std::string name;
  Descriptor file;
};

// A FIFO or a device must neither wait nor do anything.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Opened open_first(int folder, std::span<const char* const> names) {
  for (const char* name : names) {
    Descriptor file(::openat(folder, name, kFlags));
    if (file.get() < 0) {
      if (errno == ENOENT) continue;
      fail(ErrorKind::io, "{} cannot be opened: {}", name, std::strerror(errno));
    }
    struct stat info{};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
      fail(ErrorKind::invalid_argument, "{} is no regular file", name);
    return {name, std::move(file)};
  }
  fail(ErrorKind::not_found, "no adapter is there, {} is absent", fmt::join(names, " or "));
}

Descriptor open_folder(const fs::path& folder) {
  Descriptor fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0)
    fail(errno == ENOENT || errno == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, "no adapter is there: {}",
         std::strerror(errno));
  return fd;
}

AdapterFiles open_files(const fs::path& folder, bool weights) {
  const Descriptor fd = open_folder(folder);
  AdapterFiles files;
  std::vector<Descriptor> open;
  const auto add = [&](Opened opened) {
    files.names.push_back(std::move(opened.name));
    open.push_back(std::move(opened.file));
  };
  if (weights) {
    Opened weight_file = open_first(fd.get(), formats::kAdapterWeightFiles);  // the one that people look for
    add(open_first(fd.get(), formats::kAdapterConfigFiles));
    add(std::move(weight_file));
  } else {
    add(open_first(fd.get(), formats::kAdapterConfigFiles));
  }
  files.files = std::make_shared<const std::vector<Descriptor>>(std::move(open));
  return files;
}

}  // namespace

json::Array AdapterFiles::names_json() const {
  json::Array list;
  for (const std::string& name : names) list.emplace_back(name);
  return list;
}

AdapterFiles open_adapter(const fs::path& folder) { return open_files(folder, true); }
AdapterFiles open_adapter_config(const fs::path& folder) { return open_files(folder, false); }

fs::path adapter_folder(const fs::path& folder, const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    throw RequestError("path", "path is empty or holds a NUL character");
  const fs::path given = path;
  if (given.is_absolute()) return given;
  if (std::ranges::find(given, fs::path("..")) != given.end())
    throw RequestError("path", "path is relative and leads out of the folder of adapters with \"..\"");
  return folder / given;
}

std::vector<std::string> adapters_in(const fs::path& folder) {
  const auto has_one = [](const fs::path& dir, std::span<const char* const> names) {
    std::error_code ignored;
    return std::ranges::any_of(names, [&](const char* name) { return fs::is_regular_file(dir / name, ignored); });
  };
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (has_one(it->path(), formats::kAdapterWeightFiles) && has_one(it->path(), formats::kAdapterConfigFiles))
      names.push_back(it->path().filename().string());
  std::ranges::sort(names);
  if (names.size() > kAdaptersListed) names.resize(kAdaptersListed);
  return names;
}

}  // namespace hearth::server
