// Repacked weights on disk, so that a model's second load maps them instead of packing again. One file a model:
//   "hearthP1", u64 length of the index, the index (JSON), zeros up to a multiple of 64, the matrices, each 64-aligned.
//   Index: {"matrices": [{"name", "format", "N", "K", "offset", "bytes", "sha256"}]}; offsets count from the file's
//   start.
// Every matrix is checked against its digest before it is used. Whatever does not fit is packed anew.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap.h"
#include "cpu/linear.h"

namespace hearth::cpu {

class PackCache {
 public:
  // `key` names the content the weights come from; it becomes the file's name. Throws Error{invalid_argument} when it
  // is empty, longer than 128 or holds anything but letters, digits, '.', '-' and '_'. An absent or broken file is no
  // error.
  PackCache(const std::filesystem::path& dir, std::string_view key);

  // The matrix of that name, if it is here with this format and these extents and its bytes are whole.
  std::optional<Matrix> find(std::string_view name, const PackedTensor& w) const;

  // A matrix that find() did not give, and how long packing took.
  void add(std::string_view name, const Matrix& matrix, double seconds);

  // Writes the file when packing took more than a second in all since the last save; a failure is logged, no more.
  void save() noexcept;

  const std::filesystem::path& path() const { return path_; }
  double seconds_min = 1.0;  // of packing that make a file worth its bytes

 private:
  struct Entry {
    std::string format, sha256;
    int64_t N = 0, K = 0;
    size_t offset = 0, bytes = 0;
  };
  void read_index();

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry, std::less<>> entries_;
  mutable std::vector<std::pair<std::string, Matrix>> known_;  // given or added, in order: what save() writes
  double seconds_ = 0;
};

}  // namespace hearth::cpu
