// An Fs for tests whose n-th call fails, on top of another one.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fs.h"

namespace hearth::test {

class FaultyFs : public io::Fs {
 public:
  // Call number `nth` (from 1; 0: none) fails with `reason`, e.g. "No space left on device". A failing write leaves the
  // first half of its bytes behind, as a full disk does.
  // fail_from_then_on() makes every later call fail too.
  FaultyFs(io::Fs& base, int nth, std::string reason) : base_(base), nth_(nth), reason_(std::move(reason)) {}

  int calls() const { return calls_; }
  void fail_from_then_on() { sticky_ = true; }

  std::string read_file(const io::Path& path, size_t bytes_max) override {
    step(path, "read");
    return base_.read_file(path, bytes_max);
  }
  bool exists(const io::Path& path) override {
    step(path, "stat");
    return base_.exists(path);
  }
  bool is_special(const io::Path& path) override {
    step(path, "stat");
    return base_.is_special(path);
  }
  std::vector<io::Entry> list(const io::Path& dir) override {
    step(dir, "opendir");
    return base_.list(dir);
  }
  void make_dirs(const io::Path& dir) override {
    step(dir, "mkdir");
    base_.make_dirs(dir);
  }
  void remove(const io::Path& path) override {
    step(path, "unlink");
    base_.remove(path);
  }
  std::unique_ptr<io::File> create(const io::Path& path, int mode) override {
    step(path, "open");
    return std::make_unique<FaultyFile>(*this, path, base_.create(path, mode));
  }
  void rename(const io::Path& from, const io::Path& to) override {
    step(to, "rename");
    base_.rename(from, to);
  }
  void sync_dir(const io::Path& dir) override {
    step(dir, "fsync");
    base_.sync_dir(dir);
  }

 private:
  class FaultyFile : public io::File {
   public:
    FaultyFile(FaultyFs& fs, io::Path path, std::unique_ptr<io::File> file)
        : fs_(fs), path_(std::move(path)), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      if (fs_.due()) file_->write(bytes.first(bytes.size() / 2));
      fs_.step(path_, "write");
      file_->write(bytes);
    }
    void sync() override {
      fs_.step(path_, "fsync");
      file_->sync();
    }

   private:
    FaultyFs& fs_;
    io::Path path_;
    std::unique_ptr<io::File> file_;
  };

  bool due() const { return nth_ > 0 && (sticky_ ? calls_ + 1 >= nth_ : calls_ + 1 == nth_); }
  void step(const io::Path& path, const char* call) {
    const bool fails = due();
    ++calls_;
    if (fails) fail(ErrorKind::io, "{}: {}: {}", path.string(), call, reason_);
  }

  io::Fs& base_;
  int nth_, calls_ = 0;
  bool sticky_ = false;
  std::string reason_;
};

}  // namespace hearth::test
