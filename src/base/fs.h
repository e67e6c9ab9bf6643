// The file system as hearth sees it (reliability.md, rule 2). All writers go through write_file_atomic or AtomicFile:
// a temporary file in the same folder, write, fsync, rename, fsync of the folder. Tests pass another Fs.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::io {

using Path = std::filesystem::path;

// A file being written. Destruction closes it. Not thread-safe.
class File {
 public:
  virtual ~File() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;  // all of them, or Error{io}
  virtual void sync() = 0;                                   // data and size are on the disk, or Error{io}
};

struct Entry {
  std::string name;
  bool is_dir = false;
};

// Failures throw Error{io} "<path>: <call>: <reason>"; an absent path is Error{not_found}. Any thread.
class Fs {
 public:
  virtual ~Fs() = default;

  // The whole of a regular file. Error{corrupt_file} when it is larger than bytes_max; nothing is read then.
  virtual std::string read_file(const Path& path, size_t bytes_max) = 0;
  virtual bool exists(const Path& path) = 0;
  virtual bool is_special(const Path& path) = 0;         // there, and no regular file: a folder, a device, a pipe
  virtual std::vector<Entry> list(const Path& dir) = 0;  // by name; without . and ..
  virtual void make_dirs(const Path& dir) = 0;           // as mkdir -p, mode 0700 for the new ones
  virtual void remove(const Path& path) = 0;             // a file; absence is no error

  // The steps of a durable write.
  virtual std::unique_ptr<File> create(const Path& path, int mode) = 0;  // must not exist
  virtual void rename(const Path& from, const Path& to) = 0;             // replaces `to`
  virtual void sync_dir(const Path& dir) = 0;
};

// The real one; stateless.
Fs& real_fs();

// A file that appears under its name only when commit() has made it durable. Without commit, or after any failure, the
// temporary is removed and the old version stays. A failed fsync is final: the kernel has dropped the dirty pages, so
// the caller writes anew from its source. Errors name `path`, not the temporary.
class AtomicFile {
 public:
  // Throws Error{invalid_argument} when something is there already that is no regular file: a folder, a device.
  AtomicFile(Fs& fs, Path path, int mode = 0644);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();  // once; sync, rename, sync of the folder

 private:
  template <class Step>
  void attempt(const Step& step);
  void drop() noexcept;

  Fs& fs_;
  Path path_, temporary_;
  std::unique_ptr<File> file_;
};

void write_file_atomic(Fs& fs, const Path& path, std::string_view text, int mode = 0644);

}  // namespace hearth::io
