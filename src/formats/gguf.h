// GGUF files, versions 2 and 3, little-endian (spec/models.md 3, item 47): typed metadata and a tensor table, both
// views into the mapped file. Nothing here knows what a key means, `general.alignment` and `split.*` apart.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap.h"
#include "tensor/packed.h"

namespace hearth::formats {

struct GgufLimits {
  uint64_t keys_max = 65'536;
  uint64_t tensors_max = 1'000'000;
  uint64_t string_bytes_max = 64u << 20;
  uint64_t array_max = 16'000'000;
};

enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

std::string_view name_of(GgufType type);

// The strings of an array in file order; forward only, because each carries its length in the file.
class GgufStrings {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    Iterator(const std::byte* at, uint64_t left) : at_(at), left_(left) {}
    std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int);
    bool operator==(const Iterator& other) const { return left_ == other.left_; }

   private:
    const std::byte* at_ = nullptr;
    uint64_t left_ = 0;
  };

  GgufStrings() = default;
  GgufStrings(const std::byte* first, uint64_t count) : first_(first), count_(count) {}
  size_t size() const { return count_; }
  Iterator begin() const { return {first_, count_}; }
  Iterator end() const { return {nullptr, 0}; }

 private:
  const std::byte* first_ = nullptr;
  uint64_t count_ = 0;
};

// A metadata array: elements of one scalar type or strings. Index below size().
struct GgufArray {
  GgufType type = GgufType::u8;
  uint64_t count = 0;
  std::span<const std::byte> bytes;

  size_t size() const { return count; }
  bool holds_integers() const;  // u8 i8 u16 i16 u32 i32 u64 i64
  bool holds_numbers() const;   // integers, f32, f64
  bool holds_strings() const { return type == GgufType::string; }

  // Unchecked type: call after the matching holds_*. A u64 beyond 2^63 - 1 reads as 2^63 - 1.
  int64_t integer(size_t i) const;
  double number(size_t i) const;
  GgufStrings strings() const { return {bytes.data(), count}; }
};

// One metadata value; `bytes` is its payload in the file, for an array the elements.
struct GgufValue {
  std::string_view key;
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  // arrays only
  uint64_t count = 1;               // arrays only: elements
  std::span<const std::byte> bytes;
};

// A tensor of the table. dims are in file order, dims[0] = K runs fastest; dims beyond rank are 1.
struct GgufTensor {
  std::string_view name;
  PackedFormat format;
  int rank = 0;
  std::array<int64_t, 4> dims{1, 1, 1, 1};
  std::span<const std::byte> data;

  int64_t K() const { return dims[0]; }
  int64_t N() const { return dims[1] * dims[2] * dims[3]; }  // experts are stacked rows
  std::vector<int64_t> shape() const;                        // outermost first, rank entries
  PackedTensor packed() const { return {format, N(), K(), data, {}, {}}; }
};

// Immutable after opening; any thread. Views stay valid while the file lives (moves included).
class GgufFile {
 public:
  // Reads headers only and maps the rest. A file with split.count > 1 must be the first part; the others are found
  // beside it as "<stem>-00002-of-00003.gguf". Throws Error{not_found, io, corrupt_file}; Error{invalid_argument} for
  // a version or block type outside the supported ones, named with the list.
  static GgufFile open(const std::filesystem::path& path, const GgufLimits& limits = {});

  // The same for bytes that the caller keeps alive; a split file is refused. `what` names them in errors.
  static GgufFile parse(std::span<const std::byte> bytes, std::string what, const GgufLimits& limits = {});

  int version() const { return version_; }
  const std::string& name() const { return what_; }                   // path of the (first) file, for errors
  const std::deque<GgufValue>& values() const { return values_; }     // file order
  const std::deque<GgufTensor>& tensors() const { return tensors_; }  // file order, all parts
  const std::vector<MappedFile>& files() const { return files_; }     // empty after parse()

  const GgufValue* find(std::string_view key) const;           // null when absent
  const GgufTensor* find_tensor(std::string_view name) const;  // null when absent

  // Absent: nullopt. Another type: Error{corrupt_file} "<file>: <key>: expected an integer, found a string".
  std::optional<int64_t> integer(std::string_view key) const;  // any integer type
  std::optional<double> number(std::string_view key) const;    // any integer or float type
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<GgufArray> array(std::string_view key) const;
  std::optional<GgufStrings> strings(std::string_view key) const;  // an array of strings

 private:
  void read_parts(const std::filesystem::path& first, const GgufLimits& limits);
  void index_values();
  void index_tensors();

  std::string what_;
  int version_ = 0;
  std::vector<MappedFile> files_;
  std::deque<GgufValue> values_;
  std::deque<GgufTensor> tensors_;
  std::vector<uint32_t> values_by_key_, tensors_by_name_;
};

}  // namespace hearth::formats
