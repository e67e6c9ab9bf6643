// Prefixes that outlive the KV pool and the process: the tier behind the prefix tree (spec server 36).
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fs.h"
#include "decode/engine.h"
#include "decode/kv_file.h"
#include "decode/prefix_folder.h"

namespace hearth::decode {

struct PrefixDiskOptions {
  std::filesystem::path dir;  // files: dir/<fingerprint>/<digest of the space>/<id>.hkv; several models may share it
  int64_t bytes_max = 10'000'000'000;  // of all files in dir; those used longest ago go first
  std::string model;                   // names one state of the weights and of the program: another one finds nothing
  int64_t positions_min = 256;         // shorter prefixes are evaluated anew sooner than read
  io::Fs* fs = &io::real_fs();
  const Clock* clock = &system_clock();
};

// A prefix on its way from a file into pages of its own. Engine thread only.
class PrefixRestore {
 public:
  ~PrefixRestore();  // gives the pages back, unless they were taken
  PrefixRestore(const PrefixRestore&) = delete;
  PrefixRestore& operator=(const PrefixRestore&) = delete;

  // Reads and checks some bytes' worth of pages, one at least. True: all are there. Throws Error{corrupt_file}.
  bool advance(int64_t bytes);
  Sequence take();  // when all are there

 private:
  friend class PrefixDisk;
  PrefixRestore(Engine& engine, Sequence sequence, std::shared_ptr<std::FILE> file, KvFileReader reader,
                std::filesystem::path path);

  Engine& engine_;
  Sequence sequence_;
  std::shared_ptr<std::FILE> file_;
  KvFileReader reader_;
  std::filesystem::path path_;
  size_t group_ = 0;
  int64_t page_ = 0;
  std::vector<std::byte> buffer_;
};

// Called on the engine thread; files are written by a thread of its own, at the lowest priority, from pages that are
// held meanwhile. What it cannot read, or what is of another state, is a miss, a log line, and the file is removed. A
// write that fails is a log line.
class PrefixDisk {
 public:
  // Reads the heads of the files of this model, and removes what killed processes left. The engine must outlive it.
  // Throws Error{invalid_argument} for no directory, no name of the model or a cap below 0, Error{io} when the folder
  // cannot be made or listed.
  PrefixDisk(Engine& engine, PrefixDiskOptions options);
  ~PrefixDisk();  // what is not written yet is not written; call flush() to wait for it
  PrefixDisk(const PrefixDisk&) = delete;
  PrefixDisk& operator=(const PrefixDisk&) = delete;

  // Has the whole of s written, sharing its pages until that is done. Nothing happens when it is there already, is
  // shorter than positions_min or larger than the cap, when a window lacks pages, or when kQueueMax others wait.
  void keep(std::string_view space, const Sequence& s);

  // Whether it is long and small enough for keep(), and has all pages that its next position sees.
  bool takes(const Sequence& s) const;
  // Whether a file has the whole of s. Then it counts as used now.
  bool holds(std::string_view space, const Sequence& s);

  // The longest prefix of ids in that space, of at most `most` positions, that a file could restore.
  int64_t match_length(std::string_view space, std::span<const int32_t> ids, int64_t most) const;

  // Opens the file with it and takes pages; none when no file serves, or the cache has too few free pages.
  std::unique_ptr<PrefixRestore> restore(std::string_view space, std::span<const int32_t> ids, int64_t most);
  // Its file is of no use (PrefixRestore::advance threw): it is removed, and forgotten.
  void drop(const PrefixRestore& failed, const Error& error);

  // Gives back pages of writes that ended, and takes their files over. Cheap; once a step.
  void collect();
  // The same of all writes, which then do not happen: somebody needs the pages. False: there were none.
  bool give_up_pages();
  // Waits until everything is written.
  void flush();
  // The same, but what is not written by then is given up, and leaves no file. False: something was.
  bool flush_within(std::chrono::nanoseconds at_most);

  // Files of this model, and what happened since the start.
  struct Counts {
    int64_t entries = 0, bytes = 0, restores = 0, spills = 0, failures = 0;
  };
  Counts counts() const;

  static constexpr size_t kQueueMax = 8;

 private:
  struct Entry {
    std::filesystem::path path;
    std::string space;  // digest
    std::vector<int32_t> ids;
    int64_t bytes = 0;
  };
  struct Job {
    Entry entry;
    Sequence sequence;                              // pinned; the engine thread's
    std::vector<std::filesystem::path> supersedes;  // files that it makes superfluous
    bool given_up = false, written = false;         // under mutex_
  };

  void load();
  void load_file(const std::filesystem::path& path, const std::string& space);
  std::shared_ptr<std::FILE> open(const std::filesystem::path& path, uint64_t& bytes) const;
  int64_t usable(const Entry& entry, std::span<const int32_t> ids, int64_t most) const;
  const Entry* best(std::string_view space, std::span<const int32_t> ids, int64_t most, int64_t& length) const;
  void forget(const std::filesystem::path& path);
  void remove(const std::filesystem::path& path, std::string_view why);
  void work();
  void write(Job& job);
  bool copy_page(const Job& job, size_t group, int32_t page, std::span<std::byte> to);
  void make_room(int64_t bytes);
  int64_t file_bytes(int64_t length) const;

  Engine& engine_;
  PrefixDiskOptions options_;
  std::string fingerprint_;
  std::unique_ptr<PrefixFolder> folder_;
  std::vector<graph::KvGroup> groups_;
  std::vector<Entry> entries_;
  Counts counts_;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;  // the first one is being written
  std::vector<std::shared_ptr<Job>> done_;
  std::vector<std::filesystem::path> removed_;  // to make room
  int64_t failures_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hearth::decode
