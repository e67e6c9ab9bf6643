#include "hub/publish.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/fs.h"

namespace hearth::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = ".hearth-", kSuffix = ".tmp";

// Blobs need what io::File has not: reading back, reflinks, room asked for beforehand.
class File {
 public:
  File(const fs::path& path, int flags, unsigned mode = 0)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool ok() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void sync() const {
    if (::fsync(fd_) != 0) fail(ErrorKind::io, "cannot sync {}: {}", path_.string(), std::strerror(errno));
  }

 private:
  fs::path path_;
  int fd_;
};

std::string reason_of(int error, const fs::path& path) {
  std::string reason = std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) {
    const int64_t free = bytes_free(path.parent_path());
    reason += fmt::format(" ({} bytes are free)", free);
  }
  if (error == EACCES || error == EROFS || error == EPERM) reason += "; HF_HUB_CACHE chooses another store";
  return reason;
}

[[noreturn]] void cannot(std::string_view verb, const fs::path& path, int error) {
  fail(ErrorKind::io, "cannot {} {}: {}", verb, path.string(), reason_of(error, path));
}

void sync_folder(const fs::path& folder) {
  const File file(folder, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync a folder (EINVAL); there the rename itself is all there is.
  if (!file.ok() || (::fsync(file.fd()) != 0 && errno != EINVAL)) cannot("sync", folder, errno);
}

void write_all(const File& file, const fs::path& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.fd(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) cannot("write", path, n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

}  // namespace

int64_t bytes_free(const fs::path& path) {
  fs::path existing = fs::absolute(path);
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  struct statvfs info{};
  if (::statvfs(existing.c_str(), &info) != 0)
    fail(ErrorKind::io, "cannot read the free space of {}: {}", existing.string(), std::strerror(errno));
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

RepoLock RepoLock::take(const fs::path& cache, const std::string& folder) {
  const fs::path path = cache / ".locks" / folder / "hearth.lock";
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) cannot("create", path.parent_path(), error.value());
  RepoLock lock;
  lock.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock.fd_ < 0) cannot("open", path, errno);
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) cannot("lock", path, errno);
    char owner[32] = {};
    const ssize_t n = ::pread(lock.fd_, owner, sizeof(owner) - 1, 0);
    std::string pid(owner, n > 0 ? static_cast<size_t>(n) : 0);
    pid = pid.substr(0, pid.find('\n'));
    fail(ErrorKind::busy, "another hearth{} is writing {}; wait for it or stop it",
         pid.empty() ? "" : " (pid " + pid + ")", folder);
  }
  lock.held_ = true;
  const std::string pid = fmt::format("{}\n", ::getpid());
  // Only for the message above: a full disk must not stand in the way of the lock itself.
  if (::ftruncate(lock.fd_, 0) == 0 && ::pwrite(lock.fd_, pid.data(), pid.size(), 0) < 0) errno = 0;
  return lock;
}

RepoLock RepoLock::try_existing(const fs::path& cache, const std::string& folder) {
  RepoLock lock;
  lock.fd_ = ::open((cache / ".locks" / folder / "hearth.lock").c_str(), O_RDONLY | O_CLOEXEC);
  lock.held_ = lock.fd_ >= 0 && ::flock(lock.fd_, LOCK_EX | LOCK_NB) == 0;
  return lock;
}

RepoLock::RepoLock(RepoLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), held_(std::exchange(other.held_, false)) {}

RepoLock::~RepoLock() {
  if (fd_ >= 0) ::close(fd_);
}

Publisher::Publisher(fs::path cache, std::string folder) : root_(cache / folder) {
  for (const fs::path& path : {root_, root_ / "blobs", root_ / "snapshots", root_ / "refs"}) {
    if (::mkdir(path.c_str(), 0755) == 0) {
      made_.push_back(path);
    } else if (errno != EEXIST) {
      const int error = errno;
      for (size_t i = made_.size(); i-- > 0;) ::rmdir(made_[i].c_str());
      cannot("create", path, error);
    }
  }
}

Publisher::~Publisher() {
  if (committed_) return;
  std::error_code ignored;
  remove_temporaries(root_, false);
  for (size_t i = made_.size(); i-- > 0;) {
    if (made_[i].parent_path() == root_ / "snapshots") fs::remove_all(made_[i], ignored);
    else fs::remove(made_[i], ignored);  // a folder goes only when it is empty
  }
}

fs::path Publisher::temporary(std::string_view folder) {
  return root_ / folder / fmt::format("{}{}-{}{}", kPrefix, ::getpid(), ++counter_, kSuffix);
}

Publisher::Blob Publisher::add_blob(const BlobSource& source, const std::atomic<bool>* cancel,
                                    const std::function<void(int64_t)>& on_bytes) {
  const File in(source.path, O_RDONLY);
  struct stat info{};
  if (!in.ok() || ::fstat(in.fd(), &info) != 0) cannot("read", source.path, errno);
  if (!S_ISREG(info.st_mode)) fail(ErrorKind::io, "{} is no regular file", source.path.string());

  const fs::path temp = temporary("blobs");
  bool shared = source.hard_link && ::link(source.path.c_str(), temp.c_str()) == 0;
  std::optional<File> out;
  if (shared) {
    out.emplace(temp, O_RDONLY);
  } else {
    out.emplace(temp, O_RDWR | O_CREAT | O_EXCL, 0644);
    if (out->ok() && info.st_size > 0) {
      shared = ::ioctl(out->fd(), FICLONE, in.fd()) == 0;
      // Asks for the room before the first byte where the file system can tell; others say so while writing.
      if (!shared && ::fallocate(out->fd(), 0, 0, info.st_size) != 0 &&
          (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        cannot("write", temp, errno);
    }
  }
  if (!out->ok()) cannot("create", temp, errno);

  Digest digest(source.sha256 ? Digest::Kind::sha256 : Digest::Kind::sha1);
  if (!source.sha256) {
    digest.add(fmt::format("blob {}", info.st_size));
    digest.add(std::string_view("\0", 1));
  }
  constexpr size_t kChunk = size_t{4} << 20;
  const auto buffer = std::make_unique<std::byte[]>(kChunk);
  const File& reader = shared ? *out : in;
  Blob blob{.name = "", .bytes = 0, .copied = !shared};
  for (;;) {
    if (cancel && cancel->load()) fail(ErrorKind::cancelled, "the import was cancelled; nothing of it is kept");
    const ssize_t n = ::pread(reader.fd(), buffer.get(), kChunk, blob.bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot("read", source.path, errno);
    if (n == 0) break;
    const std::span<const std::byte> bytes(buffer.get(), static_cast<size_t>(n));
    digest.add(bytes);
    if (!shared) write_all(*out, temp, bytes);
    blob.bytes += n;
    if (on_bytes) on_bytes(n);
  }
  if (blob.bytes != info.st_size)
    fail(ErrorKind::io, "{} changed while it was read: it had {} bytes, {} were found", source.path.string(),
         static_cast<int64_t>(info.st_size), blob.bytes);
  blob.name = digest.hex();

  const fs::path path = root_ / "blobs" / blob.name;
  struct stat present{};
  if (::stat(path.c_str(), &present) == 0 && present.st_size == info.st_size) {
    ::unlink(temp.c_str());
    blob.copied = false;
    return blob;
  }
  out->sync();
  if (::rename(temp.c_str(), path.c_str()) != 0) cannot("write", path, errno);
  made_.push_back(path);
  sync_folder(path.parent_path());
  return blob;
}

void Publisher::add_snapshot(const std::string& revision, const std::vector<Link>& links) {
  const fs::path folder = root_ / "snapshots" / revision;
  std::error_code error;
  if (fs::exists(folder, error)) return;
  const fs::path temp = temporary("snapshots");
  if (::mkdir(temp.c_str(), 0755) != 0) cannot("create", temp, errno);
  for (const Link& link : links) {
    const fs::path path = temp / link.path;
    fs::create_directories(path.parent_path(), error);
    if (error) cannot("create", path.parent_path(), error.value());
    std::string target = "../../blobs/" + link.blob;
    for (const char c : link.path)
      if (c == '/') target.insert(0, "../");
    if (::symlink(target.c_str(), path.c_str()) != 0) cannot("create the link", path, errno);
    if (path.parent_path() != temp) sync_folder(path.parent_path());
  }
  sync_folder(temp);
  if (::rename(temp.c_str(), folder.c_str()) != 0) cannot("create", folder, errno);
  made_.push_back(folder);
  sync_folder(folder.parent_path());
}

void Publisher::set_ref(const std::string& ref, const std::string& revision) {
  io::write_file_atomic(io::real_fs(), root_ / "refs" / ref, revision);
}

int64_t remove_temporaries(const fs::path& repo_root, bool only_count) {
  int64_t count = 0;
  for (const char* folder : {"blobs", "snapshots", "refs"}) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator it(repo_root / folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      // refs/ takes its temporaries from io::AtomicFile, which names them ".main.<pid>-<n>.tmp".
      const bool ours = name.starts_with(kPrefix) || (name.starts_with('.') && folder == std::string_view("refs"));
      if (ours && name.ends_with(kSuffix)) found.push_back(it->path());
    }
    count += static_cast<int64_t>(found.size());
    std::error_code ignored;
    if (!only_count)
      for (const fs::path& path : found) fs::remove_all(path, ignored);
  }
  return count;
}

}  // namespace hearth::hub
