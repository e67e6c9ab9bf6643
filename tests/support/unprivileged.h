// Work under a user whom permissions bind: where the tests run as root, this process is nobody for as long as one
// lives.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace hearth::test {

class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(kNobody) != 0) throw std::runtime_error("seteuid");
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_;
};

// The mode of a path, until the end of a block.
class Mode {
 public:
  Mode(std::filesystem::path path, mode_t mode) : path_(std::move(path)) {
    struct stat info{};
    if (::stat(path_.c_str(), &info) != 0 || ::chmod(path_.c_str(), mode) != 0) throw std::runtime_error("chmod");
    before_ = info.st_mode & 07777;
  }
  ~Mode() { ::chmod(path_.c_str(), before_); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  std::filesystem::path path_;
  mode_t before_ = 0;
};

}  // namespace hearth::test
