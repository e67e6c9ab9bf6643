#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "formats/order.h"
#include "formats/safetensors.h"

namespace hearth::formats {
namespace {

constexpr size_t kFilesMax = 10'000;
constexpr size_t kIndexBytesMax = 16u << 20;

// {"weight_map": {name: file ...}, anything else}.
class IndexVisitor : public json::Visitor {
 public:
  explicit IndexVisitor(const std::string& what) : what_(what) {}

  void begin_object() override { open(in_map_ ? "an object" : ""); }
  void begin_array() override { open(depth_ == 0 || at_map_ || in_map_ ? "an array" : ""); }
  void end_object() override { close(); }
  void end_array() override { close(); }
  void key(std::string_view name) override {
    if (in_map_) tensor_ = name;
    else if (depth_ == 1) {
      at_map_ = name == "weight_map";
      if (at_map_ && has_map) fail(ErrorKind::corrupt_file, "{}: weight_map occurs twice", what_);
      has_map = has_map || at_map_;
    }
  }
  void scalar(json::Value value) override {
    if (depth_ == 0 || at_map_ || in_map_) wrong(value.type_name());
  }
  void string(std::string_view text) override {
    if (!in_map_) {
      if (depth_ == 0 || at_map_) wrong("a string");
      return;
    }
    tensors.emplace_back(tensor_, file_index(text));
  }

  std::deque<std::pair<std::string, uint32_t>> tensors;
  std::map<std::string, uint32_t, std::less<>> files;
  bool has_map = false;

 private:
  [[noreturn]] void wrong(std::string_view found) const {
    if (in_map_)
      fail(ErrorKind::corrupt_file, "{}: weight_map[{}]: expected a file name, found {}", what_, printable(tensor_),
           found);
    fail(ErrorKind::corrupt_file, "{}: {}expected an object, found {}", what_, at_map_ ? "weight_map: " : "", found);
  }
  void open(std::string_view refused) {
    if (!refused.empty()) wrong(refused);
    in_map_ = at_map_;
    at_map_ = false;
    ++depth_;
  }
  void close() {
    --depth_;
    in_map_ = false;
  }

  // Only plain names: an index must not reach outside its folder.
  uint32_t file_index(std::string_view file) {
    const auto known = files.find(file);
    if (known != files.end()) return known->second;
    if (!file.ends_with(".safetensors") || file.starts_with('.') || file.size() > 255 ||
        file.find_first_of(std::string_view("/\\\0", 3)) != std::string_view::npos)
      fail(ErrorKind::corrupt_file, "{}: weight_map[{}]: \"{}\" is no plain *.safetensors name", what_,
           printable(tensor_), printable(file));
    if (files.size() == kFilesMax) fail(ErrorKind::corrupt_file, "{}: more than {} files", what_, kFilesMax);
    return files.emplace(file, static_cast<uint32_t>(files.size())).first->second;
  }

  const std::string& what_;
  std::string tensor_;
  int depth_ = 0;
  bool at_map_ = false, in_map_ = false;  // the next value is the map; inside the map
};

}  // namespace

SafetensorsIndex parse_safetensors_index(std::string_view text, const std::string& what) {
  IndexVisitor visitor(what);
  json::visit(text, what, visitor, {.bytes_max = kIndexBytesMax});
  if (!visitor.has_map) fail(ErrorKind::corrupt_file, "{}: weight_map is absent", what);

  SafetensorsIndex index;
  std::vector<uint32_t> place(visitor.files.size());  // order of first use -> name order
  for (const auto& [file, first_use] : visitor.files) {
    place[first_use] = static_cast<uint32_t>(index.files.size());
    index.files.push_back(file);
  }
  index.tensors = std::move(visitor.tensors);
  for (auto& [tensor, file] : index.tensors) file = place[file];

  const auto name = [](const auto& entry) { return std::string_view(entry.first); };
  if (const Repeat twice = find_repeat(index.tensors, order_by(index.tensors, name), name))
    fail(ErrorKind::corrupt_file, "{}: weight_map names tensor {} twice", what,
         printable(index.tensors[twice.b].first));
  return index;
}

}  // namespace hearth::formats
