#include "cli/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/fs.h"
#include "net/listen.h"

namespace hearth::cli {
namespace {

[[noreturn]] void fail_io(const std::filesystem::path& file, int error) {
  fail(ErrorKind::io, "{}: {}", file.string(), std::strerror(error));
}

}  // namespace

void log_to(const std::filesystem::path& file, int fd) {
  if (file.has_parent_path()) io::real_fs().make_dirs(file.parent_path());
  const net::Descriptor opened(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat info{};
  if (opened.get() < 0 || ::fstat(opened.get(), &info) != 0) fail_io(file, errno);
  if (!S_ISREG(info.st_mode)) fail(ErrorKind::io, "{}: not a regular file", file.string());
  if (::dup2(opened.get(), fd) < 0) fail_io(file, errno);
}

bool rotate_log(const std::filesystem::path& file, int fd, int64_t bytes_max) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) fail_io(file, errno);
  if (!S_ISREG(info.st_mode) || info.st_size <= bytes_max) return false;
  const std::filesystem::path older = file.string() + ".1";
  std::error_code error;
  std::filesystem::remove(older, error);
  std::filesystem::copy_file(file, older, error);
  if (error) fail_io(older, error.value());
  if (::ftruncate(fd, 0) != 0) fail_io(file, errno);
  return true;
}

}  // namespace hearth::cli
