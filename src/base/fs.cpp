#include "base/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth::io {
namespace {

[[noreturn]] void failed(const Path& path, const char* call, int error) {
  fail(error == ENOENT || error == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, "{}: {}: {}", path.string(), call,
       std::strerror(error));
}

class Descriptor {
 public:
  Descriptor(const Path& path, int flags, int mode = 0) : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (fd_ < 0) failed(path, "open", errno);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

void sync_descriptor(int fd, const Path& path) {
  if (::fsync(fd) != 0) failed(path, "fsync", errno);
}

class RealFile : public File {
 public:
  RealFile(const Path& path, int mode) : path_(path), descriptor_(path, O_WRONLY | O_CREAT | O_EXCL, mode) {}

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failed(path_, "write", errno);
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  void sync() override { sync_descriptor(descriptor_.get(), path_); }

 private:
  Path path_;
  Descriptor descriptor_;
};

class RealFs : public Fs {
 public:
  std::string read_file(const Path& path, size_t bytes_max) override {
    const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a FIFO would wait for a writer
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) failed(path, "stat", errno);
    if (!S_ISREG(info.st_mode)) fail(ErrorKind::io, "{}: not a regular file", path.string());
    const auto size = static_cast<size_t>(info.st_size);
    if (size > bytes_max)
      fail(ErrorKind::corrupt_file, "{}: {} bytes, the limit is {}", path.string(), size, bytes_max);
    std::string text(size, '\0');
    size_t got = 0;
    while (got < size) {
      const ssize_t n = ::read(file.get(), text.data() + got, size - got);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failed(path, "read", errno);
      if (n == 0) fail(ErrorKind::io, "{}: shrank to {} of {} bytes while it was read", path.string(), got, size);
      got += static_cast<size_t>(n);
    }
    return text;
  }

  bool exists(const Path& path) override {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR) failed(path, "stat", errno);
    return false;
  }

  bool is_special(const Path& path) override {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0) return !S_ISREG(info.st_mode);
    if (errno != ENOENT && errno != ENOTDIR) failed(path, "stat", errno);
    return false;
  }

  std::vector<Entry> list(const Path& dir) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(dir.c_str()), ::closedir);
    if (!stream) failed(dir, "opendir", errno);
    std::vector<Entry> entries;
    for (;;) {
      errno = 0;
      const dirent* found = ::readdir(stream.get());
      if (!found && errno != 0) failed(dir, "readdir", errno);
      if (!found) break;
      const std::string_view name = found->d_name;
      if (name == "." || name == "..") continue;
      struct stat info{};  // follows symbolic links, as hub caches need
      const bool is_dir = ::fstatat(::dirfd(stream.get()), found->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
      entries.push_back({std::string(name), is_dir});
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }

  void make_dirs(const Path& dir) override {
    if (dir.empty() || ::mkdir(dir.c_str(), 0700) == 0) return;
    if (errno == ENOENT && dir.has_parent_path() && dir.parent_path() != dir) {
      make_dirs(dir.parent_path());
      if (::mkdir(dir.c_str(), 0700) == 0) return;
    }
    const int error = errno;
    struct stat info{};
    if (error == EEXIST && ::stat(dir.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return;
    failed(dir, "mkdir", error);
  }

  void remove(const Path& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) failed(path, "unlink", errno);
  }

  std::unique_ptr<File> create(const Path& path, int mode) override { return std::make_unique<RealFile>(path, mode); }

  void rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) failed(to, "rename", errno);
  }

  void sync_dir(const Path& dir) override {
    const Descriptor folder(dir.empty() ? Path(".") : dir, O_RDONLY | O_DIRECTORY);
    sync_descriptor(folder.get(), dir);
  }
};

// Hidden beside the file, named after it as far as a name may be long.
Path temporary_of(const Path& path) {
  static std::atomic<uint64_t> count{0};
  const std::string end = fmt::format(".{}-{}.tmp", ::getpid(), count++), name = path.filename().string();
  return path.parent_path() / fmt::format(".{}{}", utf8_cut(name, NAME_MAX - 1 - end.size()), end);
}

}  // namespace

Fs& real_fs() {
  static RealFs fs;
  return fs;
}

AtomicFile::AtomicFile(Fs& fs, Path path, int mode) : fs_(fs), path_(std::move(path)), temporary_(temporary_of(path_)) {
  // A rename would put a file in the place of a device as well.
  if (fs_.is_special(path_))
    fail(ErrorKind::invalid_argument, "{}: something else than a file is there, it is not replaced", path_.string());
  attempt([&] { file_ = fs_.create(temporary_, mode); });
}

AtomicFile::~AtomicFile() { drop(); }

// Runs a step; when it fails nothing of this file is left but the old version. The error names the file that was asked
// for, as nobody knows the temporary.
template <class Step>
void AtomicFile::attempt(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    drop();
    std::string sentence = error.what();
    if (const std::string name = temporary_.string(); sentence.starts_with(name))
      sentence.replace(0, name.size(), path_.string());
    throw Error(error.kind(), sentence);
  } catch (...) {
    drop();
    throw;
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  HEARTH_CHECK(file_, "{} is committed or has failed", path_.string());
  attempt([&] { file_->write(bytes); });
}

void AtomicFile::commit() {
  HEARTH_CHECK(file_, "{} is committed or has failed", path_.string());
  attempt([&] {
    file_->sync();
    fs_.rename(temporary_, path_);
  });
  file_.reset();
  // The new version is in place; should this fail, either version may survive a power loss, and the caller hears of it.
  fs_.sync_dir(path_.parent_path());
}

void AtomicFile::drop() noexcept {
  if (!file_) return;
  file_.reset();
  try {
    fs_.remove(temporary_);
  } catch (const Error&) {  // the first failure is the one to report
  }
}

void write_file_atomic(Fs& fs, const Path& path, std::string_view text, int mode) {
  AtomicFile file(fs, path, mode);
  file.write(text);
  file.commit();
}

}  // namespace hearth::io
