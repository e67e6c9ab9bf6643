// Who uses a folder that several processes share: by flock on the folder itself, which the kernel drops with a process
// that is killed, and which a sandbox allows where asking for a process by its number is refused.
#pragma once
#include <filesystem>
#include <functional>
#include <string_view>

namespace hearth::io {

// Whether `name` is what AtomicFile calls the temporary of a file "<anything><suffix>": ".<name>.<pid>-<n>.tmp".
bool is_temporary(std::string_view name, std::string_view suffix);

// Calls clean() if nobody uses dir; nobody begins to before it returns. False without a call: it is in use, it is not
// there or not ours to open, its file system has no locks. What clean() throws passes. Any thread.
bool if_unused(const std::filesystem::path& dir, const std::function<void()>& clean);

// This process as one of those that use dir. One thread.
class FolderUse {
 public:
  // First what if_unused does. Several may begin at once: one of them cleans, and the others wait for it.
  FolderUse(const std::filesystem::path& dir, const std::function<void()>& clean);
  ~FolderUse();
  FolderUse(FolderUse&& other) noexcept;
  FolderUse(const FolderUse&) = delete;
  FolderUse& operator=(const FolderUse&) = delete;

  // False where it cannot be locked. A file system without locks cleans nothing for anybody; where this process alone
  // could not (it has no descriptor left, say), another one may take what it writes for a leftover.
  bool is_held() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace hearth::io
