#include "base/folder_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace hearth::io {
namespace {

class Folder {
 public:
  explicit Folder(const std::filesystem::path& dir)
      : descriptor_(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~Folder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  bool lock(int how) {
    if (descriptor_ < 0) return false;
    int failed = 0;
    while ((failed = ::flock(descriptor_, how)) != 0 && errno == EINTR) {
    }
    return failed == 0;
  }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace

bool is_temporary(std::string_view name, std::string_view suffix) {
  return name.starts_with('.') && name.ends_with(".tmp") && name.find(std::string(suffix) + ".") != name.npos;
}

bool if_unused(const std::filesystem::path& dir, const std::function<void()>& clean) {
  Folder folder(dir);
  if (!folder.lock(LOCK_EX | LOCK_NB)) return false;
  clean();
  return true;
}

FolderUse::FolderUse(const std::filesystem::path& dir, const std::function<void()>& clean) {
  Folder folder(dir);
  if (folder.lock(LOCK_EX | LOCK_NB)) clean();
  // A lock is given back before it is changed. Whoever cleans in between finds nothing of ours: we have not begun.
  if (folder.lock(LOCK_SH)) descriptor_ = folder.release();
}

FolderUse::~FolderUse() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FolderUse::FolderUse(FolderUse&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace hearth::io
