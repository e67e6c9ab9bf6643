// Repacked weights on disk, so that a model's second load reads them instead of packing again. One file a model:
//   0       "hearthP3", zeros up to 4096
//   4096    the matrices, each 64-aligned, zeros between
//   then    the index (JSON):
//             {"key", "source", "chunk_bytes", "sums",
//              "matrices": [{"name", "format", "N", "K", "offset", "bytes", "nonfinite"}],
//              "checked": [{"name", "format", "N", "K", "nonfinite"}]}
//           offsets count from the file's start; "sums" holds 16 hexadecimal digits for each chunk of the bytes before
//           the index (base/checksum.h); "checked" are weights that are used as their file has them
//   last    the foot, 64 bytes of little-endian u64: bytes of the file, bytes of the index, checksum of the index,
//           checksum of the foot's first three words, three zeros, "hearthP3"
//
// A file is written whole under another name, synced and renamed. Its foot tells a cut or torn one; a chunk is compared
// with its sum as it is read, before the first use of a matrix in it, by all threads, at the speed of memory. Whatever
// does not fit is packed anew, and said. The folder holds at most bytes_max: the files that were used longest ago go
// first.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.h"
#include "base/team.h"
#include "cpu/linear.h"
#include "cpu/weight_arena.h"

namespace hearth::cpu {

struct PackCacheOptions {
  std::filesystem::path dir;  // empty: nothing is kept
  std::string key;            // names one state of the files that the weights come from; the file's name
  std::string source;         // the model, for people
  int64_t bytes_max = 20'000'000'000;
  int64_t bytes_min = 16 << 20;  // of packed matrices that make a file worth reading: less is packed in a blink
  io::Fs* fs = &io::real_fs();
};

// One thread.
class PackCache {
 public:
  // Throws Error{invalid_argument} when the key is empty, longer than 128 or holds anything but letters, digits, '.',
  // '-' and '_'. An absent or broken file is no error.
  explicit PackCache(PackCacheOptions options);

  struct Found {
    Matrix matrix;
    int64_t nonfinite = 0;  // scales and values that are NaN or infinite, counted when it was packed
  };
  // The matrix of that name, if it is here with this format and these extents and its bytes are whole.
  std::optional<Found> find(std::string_view name, const PackedTensor& w, Team* team = nullptr);
  // How many scales and values of a weight that is used as its file has it are NaN or infinite, if that is known.
  std::optional<int64_t> checked(std::string_view name, const PackedTensor& w);

  // What find() and checked() did not give.
  void add(std::string_view name, const Matrix& matrix, int64_t nonfinite);
  void add_checked(std::string_view name, const PackedTensor& w, int64_t nonfinite);

  // Writes the file when bytes_min or more were added since the last save, or when the one that is there
  // is of no use as it is; a failure is logged, no more.
  void save() noexcept;

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Entry {
    std::string format;
    int64_t N = 0, K = 0, nonfinite = 0;
    size_t offset = 0, bytes = 0;  // of matrices
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  enum class State : uint8_t { unread, whole, damaged };

  void open();
  void read_index(std::span<const std::byte> text);
  bool whole(size_t offset, size_t bytes, Team* team);
  void needs_mending(std::string_view why);
  void write();

  PackCacheOptions options_;
  std::filesystem::path path_;
  std::shared_ptr<std::FILE> in_;
  WeightArena arena_;
  WeightArena::Piece data_;  // what lies before the index; chunks of it are read when they are first of use
  size_t data_end_ = 0;      // where the index begins
  size_t chunk_bytes_ = 0;
  std::vector<uint64_t> sums_;
  std::vector<State> chunks_;
  Entries matrices_, checked_;  // of the file

  struct Known {
    std::string name;
    Matrix matrix;
    int64_t nonfinite;
  };
  std::vector<Known> known_;  // given or added, in order: what save() writes
  std::vector<std::pair<std::string, Entry>> known_checked_;
  int64_t added_ = 0;  // bytes since the last save
  bool mend_ = false;  // a file is there, and it is not whole or not of this layout
};

}  // namespace hearth::cpu
