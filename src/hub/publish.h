// Writing into one repository of the hub cache: temporary file, sync, rename, sync of the folder.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::hub {

// An exclusive lock on a repository, `.locks/<folder>/hearth.lock`; released by the kernel when its owner dies. While
// it is held every ".hearth-*.tmp" of the repository is stale.
class RepoLock {
 public:
  // Throws Error{busy} naming the owner's pid, Error{io}.
  static RepoLock take(const std::filesystem::path& cache, const std::string& folder);
  // Nothing is created or changed; an empty lock (held() false) when somebody else has it.
  static RepoLock try_existing(const std::filesystem::path& cache, const std::string& folder);

  RepoLock(RepoLock&& other) noexcept;
  RepoLock& operator=(RepoLock&&) = delete;
  ~RepoLock();
  bool held() const { return held_; }

 private:
  RepoLock() = default;
  int fd_ = -1;
  bool held_ = false;
};

// One import's writes below `<cache>/<folder>`. Everything begun is removed by the destructor unless commit() was
// called.
class Publisher {
 public:
  Publisher(std::filesystem::path cache, std::string folder);  // makes blobs/, snapshots/, refs/; throws Error{io}
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  struct BlobSource {
    std::filesystem::path path;
    bool sha256 = false;     // else the git blob SHA-1
    bool hard_link = false;  // where source and store are on one file system
  };
  struct Blob {
    std::string name;
    int64_t bytes = 0;
    bool copied = false;  // false: shared with the source, or already there
  };
  // Throws Error{io}; Error{cancelled} when *cancel becomes true. on_bytes gets sizes as they pass.
  Blob add_blob(const BlobSource& source, const std::atomic<bool>* cancel,
                const std::function<void(int64_t)>& on_bytes);

  struct Link {
    std::string path, blob;
  };
  // Makes snapshots/<revision> with its links, by rename of a complete folder; an existing one is kept.
  void add_snapshot(const std::string& revision, const std::vector<Link>& links);
  void set_ref(const std::string& ref, const std::string& revision);
  void commit() { committed_ = true; }

 private:
  std::filesystem::path temporary(std::string_view folder);
  std::filesystem::path root_;
  std::vector<std::filesystem::path> made_;  // in order; folders go only when empty
  int counter_ = 0;
  bool committed_ = false;
};

// Removes (or counts) the ".hearth-*.tmp" of a repository; hold its lock.
int64_t remove_temporaries(const std::filesystem::path& repo_root, bool only_count);

// Bytes that a user may still write on the file system of `path` (or of its nearest existing parent).
int64_t bytes_free(const std::filesystem::path& path);

}  // namespace hearth::hub
