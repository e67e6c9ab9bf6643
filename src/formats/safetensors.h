// safetensors files and sharded sets of them (spec/models.md 2.1 item 3; 3, item 46). Tables of views into mapped
// files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mmap.h"
#include "tensor/tensor_view.h"

namespace hearth::formats {

constexpr uint64_t kSafetensorsHeaderMax = 100'000'000;

struct SafeTensor {
  std::string name;
  std::string_view dtype_name;  // as the file spells it: "BF16"
  std::optional<DType> dtype;   // none: listed, but not readable here (F8_*, I16, ...)
  Shape shape;
  std::span<const std::byte> data;  // need not be aligned to its dtype
  uint32_t file = 0;                // of a set: index into files()
};

// One file's header as a table, in the order of the data. Immutable; any thread.
struct SafetensorsHeader {
  std::deque<SafeTensor> tensors;
  std::deque<std::pair<std::string, std::string>> metadata;  // "__metadata__"
};

// Reads the header of `bytes`, which the caller keeps alive; `what` names them in errors. Throws Error{corrupt_file}
// unless u64 header length n <= 100 MB and <= file - 8, the header is one JSON object, names are unique, no dimension
// is 0, and the tensors tile the data without hole or overlap; Error{invalid_argument} for an unknown dtype, by name.
SafetensorsHeader parse_safetensors(std::span<const std::byte> bytes, const std::string& what);

// One file, or all shards of a model. Immutable after opening; any thread; views stay valid over moves.
class Safetensors {
 public:
  // Headers only; the rest is mapped. Throws as parse_safetensors does, Error{not_found, io} for the file itself.
  static Safetensors open(const std::filesystem::path& file);

  // The shards that `model.safetensors.index.json` names when present, else `model*.safetensors` in name order.
  // Error{not_found} when there is none; Error{corrupt_file} for a name in two files, a mapped file that is absent or
  // no plain file name, a mapped tensor that its file lacks.
  static Safetensors open_dir(const std::filesystem::path& dir);

  const std::deque<SafeTensor>& tensors() const { return tensors_; }
  const std::deque<std::pair<std::string, std::string>>& metadata() const { return metadata_; }  // of the first file
  const std::vector<MappedFile>& files() const { return files_; }

  const SafeTensor* find(std::string_view name) const;  // null when absent

  // A tensor as a typed view. Error{corrupt_file} "<file>: tensor x is absent"; Error{invalid_argument} for a dtype
  // that is only listed.
  TensorView view(std::string_view name) const;
  TensorView view(const SafeTensor& tensor) const;

 private:
  void add(const std::filesystem::path& file);
  void index();
  std::string name_of_file(uint32_t file) const { return files_[file].path().string(); }

  std::filesystem::path path_;
  std::vector<MappedFile> files_;
  std::deque<SafeTensor> tensors_;
  std::deque<std::pair<std::string, std::string>> metadata_;
  std::vector<uint32_t> by_name_;
};

// The weight_map of an index file. Throws Error{corrupt_file}: no map, a value that is no string, a file name that is
// no plain "*.safetensors" name, a tensor named twice, more than 10,000 files.
struct SafetensorsIndex {
  std::vector<std::string> files;                        // each once, in name order
  std::deque<std::pair<std::string, uint32_t>> tensors;  // name, index into files
};
SafetensorsIndex parse_safetensors_index(std::string_view text, const std::string& what);

}  // namespace hearth::formats
