#include "formats/gguf.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"
#include "formats/gguf_parse.h"
#include "formats/order.h"

namespace hearth::formats {
namespace {

bool is_integer(GgufType type) { return type <= GgufType::i32 || type == GgufType::u64 || type == GgufType::i64; }

bool is_number(GgufType type) { return is_integer(type) || type == GgufType::f32 || type == GgufType::f64; }

uint64_t length_at(const std::byte* p) {
  uint64_t size;
  std::memcpy(&size, p, 8);
  return size;
}

std::string_view key_of(const GgufValue& v) { return v.key; }
std::string_view tensor_name(const GgufTensor& t) { return t.name; }

}  // namespace

std::string_view GgufStrings::Iterator::operator*() const {
  return {reinterpret_cast<const char*>(at_) + 8, length_at(at_)};
}

GgufStrings::Iterator& GgufStrings::Iterator::operator++() {
  at_ += 8 + length_at(at_);
  --left_;
  return *this;
}

GgufStrings::Iterator GgufStrings::Iterator::operator++(int) {
  Iterator before = *this;
  ++*this;
  return before;
}

bool GgufArray::holds_integers() const { return is_integer(type); }
bool GgufArray::holds_numbers() const { return is_number(type); }
int64_t GgufArray::integer(size_t i) const { return load_integer(type, bytes.data() + i * size_of(type)); }
double GgufArray::number(size_t i) const { return load_number(type, bytes.data() + i * size_of(type)); }

std::vector<int64_t> GgufTensor::shape() const {
  std::vector<int64_t> outermost_first(dims.begin(), dims.begin() + rank);
  std::reverse(outermost_first.begin(), outermost_first.end());
  return outermost_first;
}

GgufFile GgufFile::open(const std::filesystem::path& path, const GgufLimits& limits) {
  GgufFile file;
  file.what_ = path.string();
  file.files_.push_back(MappedFile::open(path));
  file.version_ = parse_gguf(file.files_[0].bytes(), file.what_, limits, file.values_, file.tensors_);
  file.index_values();
  file.read_parts(path, limits);
  file.index_tensors();
  return file;
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::string what, const GgufLimits& limits) {
  GgufFile file;
  file.what_ = std::move(what);
  file.version_ = parse_gguf(bytes, file.what_, limits, file.values_, file.tensors_);
  file.index_values();
  const int64_t parts = file.integer("split.count").value_or(1);
  if (parts > 1) fail(ErrorKind::invalid_argument, "{}: one of {} parts, the others are needed", file.what_, parts);
  file.index_tensors();
  return file;
}

void GgufFile::read_parts(const std::filesystem::path& first, const GgufLimits& limits) {
  const int64_t parts = integer("split.count").value_or(1);
  if (parts <= 1) return;
  if (const int64_t no = integer("split.no").value_or(0); no != 0)
    fail(ErrorKind::invalid_argument, "{}: part {} of {}; name the first part", what_, no + 1, parts);
  const std::string suffix = fmt::format("-00001-of-{:05}.gguf", parts), file_name = first.filename().string();
  if (parts > 99'999 || !file_name.ends_with(suffix))
    fail(ErrorKind::corrupt_file, "{}: split.count is {}, so the name must end in \"{}\"", what_, parts, suffix);
  const std::string stem = file_name.substr(0, file_name.size() - suffix.size());

  for (int64_t part = 2; part <= parts; ++part) {
    const auto path = first.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", stem, part, parts);
    files_.push_back(MappedFile::open(path));
    std::deque<GgufValue> values;
    parse_gguf(files_.back().bytes(), path.string(), limits, values, tensors_);
    for (const auto& [key, want] : {std::pair<std::string_view, int64_t>{"split.no", part - 1}, {"split.count", parts}})
      for (const GgufValue& v : values)
        if (v.key == key && (!is_integer(v.type) || load_integer(v.type, v.bytes.data()) != want))
          fail(ErrorKind::corrupt_file, "{}: {} is not {}, as the place among {} parts says", path.string(), key, want,
               parts);
  }
  const auto want = integer("split.tensors.count");
  if (want && *want != static_cast<int64_t>(tensors_.size()))
    fail(ErrorKind::corrupt_file, "{}: split.tensors.count is {}, the {} parts hold {}", what_, *want, parts,
         tensors_.size());
}

void GgufFile::index_values() {
  values_by_key_ = order_by(values_, key_of);
  if (const Repeat twice = find_repeat(values_, values_by_key_, key_of))
    fail(ErrorKind::corrupt_file, "{}: key {} occurs twice", what_, printable(values_[twice.b].key));
}

void GgufFile::index_tensors() {
  tensors_by_name_ = order_by(tensors_, tensor_name);
  if (const Repeat twice = find_repeat(tensors_, tensors_by_name_, tensor_name))
    fail(ErrorKind::corrupt_file, "{}: tensor {} occurs twice", what_, printable(tensors_[twice.b].name));
}

const GgufValue* GgufFile::find(std::string_view key) const { return find_by(values_, values_by_key_, key_of, key); }

const GgufTensor* GgufFile::find_tensor(std::string_view tensor) const {
  return find_by(tensors_, tensors_by_name_, tensor_name, tensor);
}

namespace {

[[noreturn]] void wrong_type(const std::string& what, std::string_view key, const char* expected, const GgufValue& v) {
  if (v.type == GgufType::array)
    fail(ErrorKind::corrupt_file, "{}: {}: expected {}, found an array of {}", what, key, expected, name_of(v.element));
  fail(ErrorKind::corrupt_file, "{}: {}: expected {}, found a {}", what, key, expected, name_of(v.type));
}

}  // namespace

std::optional<int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* v = find(key);
  if (!v) return std::nullopt;
  if (!is_integer(v->type)) wrong_type(what_, key, "an integer", *v);
  if (v->type == GgufType::u64 && length_at(v->bytes.data()) > static_cast<uint64_t>(INT64_MAX))
    fail(ErrorKind::corrupt_file, "{}: {}: {} exceeds 2^63 - 1", what_, key, length_at(v->bytes.data()));
  return load_integer(v->type, v->bytes.data());
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* v = find(key);
  if (!v) return std::nullopt;
  if (!is_number(v->type)) wrong_type(what_, key, "a number", *v);
  return load_number(v->type, v->bytes.data());
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* v = find(key);
  if (!v) return std::nullopt;
  if (v->type != GgufType::boolean) wrong_type(what_, key, "a boolean", *v);
  return v->bytes[0] == std::byte{1};
}

std::optional<std::string_view> GgufFile::string(std::string_view key) const {
  const GgufValue* v = find(key);
  if (!v) return std::nullopt;
  if (v->type != GgufType::string) wrong_type(what_, key, "a string", *v);
  return std::string_view(reinterpret_cast<const char*>(v->bytes.data()), v->bytes.size());
}

std::optional<GgufArray> GgufFile::array(std::string_view key) const {
  const GgufValue* v = find(key);
  if (!v) return std::nullopt;
  if (v->type != GgufType::array) wrong_type(what_, key, "an array", *v);
  return GgufArray{v->element, v->count, v->bytes};
}

std::optional<GgufStrings> GgufFile::strings(std::string_view key) const {
  const auto values = array(key);
  if (!values) return std::nullopt;
  if (!values->holds_strings()) wrong_type(what_, key, "an array of strings", *find(key));
  return values->strings();
}

}  // namespace hearth::formats
