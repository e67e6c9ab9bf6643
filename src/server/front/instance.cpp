#include "server/front/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/fs.h"
#include "base/random.h"

namespace hearth::server {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;

std::string read_all(int fd) {
  std::string text(kFileBytesMax, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

// "pid\nurl\n"
InstanceInfo parse(const std::string& text) {
  InstanceInfo info;
  const size_t line = text.find('\n');
  std::from_chars(text.data(), text.data() + std::min(line, text.size()), info.pid);
  if (line != std::string::npos) info.url = text.substr(line + 1, text.find('\n', line + 1) - line - 1);
  return info;
}

}  // namespace

Instance::Instance(std::filesystem::path folder) : folder_(std::move(folder)) {
  io::real_fs().make_dirs(folder_);
  const std::filesystem::path path = folder_ / "serve.lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) fail(ErrorKind::io, "{}: {}", path.string(), std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const InstanceInfo other = parse(read_all(fd_));
    ::close(fd_);
    fail(ErrorKind::busy, "a server runs already as process {} at {}: hearth stop ends it", other.pid, other.url);
  }
  std::byte random[32];
  fill_entropy(random);
  for (const std::byte b : random) token_ += fmt::format("{:02x}", static_cast<unsigned>(b));
}

Instance::~Instance() {
  if (::ftruncate(fd_, 0) != 0) {  // whoever reads it sees that nobody holds the lock
  }
  std::error_code ignored;
  std::filesystem::remove(folder_ / "session.token", ignored);
  ::close(fd_);
}

void Instance::publish(const std::string& url) {
  io::write_file_atomic(io::real_fs(), folder_ / "session.token", token_ + "\n", 0600);
  const std::string text = fmt::format("{}\n{}\n", ::getpid(), url);
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    fail(ErrorKind::io, "{}: {}", (folder_ / "serve.lock").string(), std::strerror(errno));
}

std::optional<InstanceInfo> find_instance(const std::filesystem::path& folder) {
  const int fd = ::open((folder / "serve.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  const bool free = ::flock(fd, LOCK_SH | LOCK_NB) == 0;
  InstanceInfo info = parse(read_all(fd));
  ::close(fd);
  if (free || info.pid <= 0) return std::nullopt;
  std::string token = io::real_fs().read_file(folder / "session.token", kFileBytesMax);
  if (token.ends_with('\n')) token.pop_back();
  info.token = std::move(token);
  return info;
}

}  // namespace hearth::server
