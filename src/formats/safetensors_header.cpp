#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "formats/byte_reader.h"
#include "formats/order.h"
#include "formats/safetensors.h"

namespace hearth::formats {
namespace {

struct DTypeName {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};

constexpr DTypeName kDTypes[] = {
    {"F64", 64, DType::f64},      {"F32", 32, DType::f32},      {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},    {"I64", 64, DType::i64},      {"I32", 32, DType::i32},
    {"U32", 32, DType::u32},      {"I8", 8, DType::i8},         {"U8", 8, DType::u8},
    {"BOOL", 8, DType::boolean},  {"I16", 16, std::nullopt},    {"U16", 16, std::nullopt},
    {"U64", 64, std::nullopt},    {"C64", 64, std::nullopt},    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt}, {"F4", 4, std::nullopt},
};

// The header's grammar: {name: {"dtype": s, "shape": [n ...], "data_offsets": [n, n]} ..., "__metadata__": {s: s ...}}.
class HeaderVisitor : public json::Visitor {
 public:
  HeaderVisitor(std::span<const std::byte> data, const std::string& what, SafetensorsHeader& out)
      : data_(data), what_(what), out_(out) {}

  void begin_object() override {
    if (depth_ == 0 || (depth_ == 1 && !in_array_)) {
      if (++depth_ == 2) begin_entry();
      return;
    }
    unexpected("an object");
  }
  void end_object() override {
    if (depth_-- == 2 && !in_metadata_) end_entry();
    if (depth_ == 1) in_metadata_ = false;
  }
  void begin_array() override {
    if (depth_ != 2 || in_metadata_ || in_array_ || (field_ != "shape" && field_ != "data_offsets"))
      unexpected("an array");
    in_array_ = true;
    count_ = 0;
  }
  void end_array() override {
    in_array_ = false;
    if (field_ == "data_offsets" && count_ != 2)
      fail(ErrorKind::corrupt_file, "{}: tensor {}: data_offsets has {} numbers, 2 are needed", what_, shown(), count_);
    if (field_ == "shape") rank_ = count_;
  }
  void key(std::string_view name) override {
    if (depth_ == 1) {
      name_ = name;
      return;
    }
    field_ = name;
    if (in_metadata_) return;
    const bool known = name == "dtype" || name == "shape" || name == "data_offsets";
    if (!known) fail(ErrorKind::corrupt_file, "{}: tensor {}: unknown field {}", what_, shown(), printable(name));
    bool& seen = name == "dtype" ? has_dtype_ : name == "shape" ? has_shape_ : has_offsets_;
    if (seen) fail(ErrorKind::corrupt_file, "{}: tensor {}: {} occurs twice", what_, shown(), name);
    seen = true;
  }
  void scalar(json::Value value) override {
    if (depth_ == 1 && value.is_null() && name_ == "__metadata__") return once_metadata();  // MLX writes it so
    if (!in_array_) unexpected(value.type_name());
    const int64_t number = value.is_int() ? value.as_int("") : -1;
    if (number < 0)
      fail(ErrorKind::corrupt_file, "{}: tensor {}: {} holds something else than whole numbers below 2^63", what_,
           shown(), field_);
    if (field_ == "shape") {
      if (count_ == kRankMax)
        fail(ErrorKind::corrupt_file, "{}: tensor {} has more than {} dimensions", what_, shown(), kRankMax);
      if (number == 0) fail(ErrorKind::corrupt_file, "{}: tensor {}: dimension {} is 0", what_, shown(), count_);
      dims_[count_] = number;
    } else if (count_ < 2) {
      offsets_[count_] = static_cast<uint64_t>(number);
    }
    ++count_;
  }
  void string(std::string_view text) override {
    if (in_metadata_) out_.metadata.emplace_back(field_, text);
    else if (depth_ == 2 && field_ == "dtype" && !in_array_) set_dtype(text);
    else unexpected("a string");
  }

 private:
  std::string shown() const { return printable(name_); }

  [[noreturn]] void unexpected(std::string_view found) const {
    if (depth_ == 0) fail(ErrorKind::corrupt_file, "{}: header: expected an object, found {}", what_, found);
    if (depth_ == 1) fail(ErrorKind::corrupt_file, "{}: {}: expected an object, found {}", what_, shown(), found);
    fail(ErrorKind::corrupt_file, "{}: {}.{}: unexpected {}", what_, shown(), printable(field_), found);
  }

  void once_metadata() {
    if (std::exchange(has_metadata_, true)) fail(ErrorKind::corrupt_file, "{}: __metadata__ occurs twice", what_);
  }

  void begin_entry() {
    in_metadata_ = name_ == "__metadata__";
    if (in_metadata_) once_metadata();
    has_dtype_ = has_shape_ = has_offsets_ = false;
    field_.clear();
  }

  void set_dtype(std::string_view text) {
    const auto known = std::ranges::find(kDTypes, text, &DTypeName::name);
    if (known == std::end(kDTypes))
      fail(ErrorKind::invalid_argument,
           "{}: tensor {} has dtype {}; supported are F64 F32 F16 BF16 I64 I32 U32 I8 U8 BOOL", what_, shown(),
           printable(text));
    dtype_ = &*known;
  }

  void end_entry() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_)
      fail(ErrorKind::corrupt_file, "{}: tensor {}: {} is absent", what_, shown(),
           !has_dtype_   ? "dtype"
           : !has_shape_ ? "shape"
                         : "data_offsets");
    uint64_t bits = static_cast<uint64_t>(dtype_->bits);
    for (size_t i = 0; i < rank_; ++i)
      if (__builtin_mul_overflow(bits, static_cast<uint64_t>(dims_[i]), &bits) || bits > INT64_MAX)
        fail(ErrorKind::corrupt_file, "{}: tensor {}: the size of shape [{}] wraps", what_, shown(),
             fmt::join(dims_, dims_ + rank_, ", "));
    const auto [begin, end] = std::pair(offsets_[0], offsets_[1]);
    if (begin > end || end > data_.size())
      fail(ErrorKind::corrupt_file, "{}: tensor {}: data_offsets [{}, {}] lie outside the {} bytes of data", what_,
           shown(), begin, end, data_.size());
    if (bits % 8 != 0 || end - begin != bits / 8)
      fail(ErrorKind::corrupt_file, "{}: tensor {}: {} [{}] needs {} bytes, data_offsets hold {}", what_, shown(),
           dtype_->name, fmt::join(dims_, dims_ + rank_, ", "), bits / 8, end - begin);
    out_.tensors.push_back({.name = name_,
                            .dtype_name = dtype_->name,
                            .dtype = dtype_->dtype,
                            .shape = Shape(std::span<const int64_t>(dims_, rank_)),
                            .data = data_.subspan(begin, end - begin),
                            .file = 0});
  }

  std::span<const std::byte> data_;
  const std::string& what_;
  SafetensorsHeader& out_;
  std::string name_, field_;
  const DTypeName* dtype_ = nullptr;
  int64_t dims_[kRankMax] = {};
  uint64_t offsets_[2] = {};
  size_t count_ = 0, rank_ = 0;
  int depth_ = 0;
  bool in_metadata_ = false, has_metadata_ = false, in_array_ = false, has_dtype_ = false, has_shape_ = false,
       has_offsets_ = false;
};

void require_unique_names(const SafetensorsHeader& header, const std::string& what) {
  const auto tensor_name = [](const SafeTensor& t) { return std::string_view(t.name); };
  const auto key = [](const auto& entry) { return std::string_view(entry.first); };
  const auto& tensors = header.tensors;
  const auto& metadata = header.metadata;
  if (const Repeat twice = find_repeat(tensors, order_by(tensors, tensor_name), tensor_name))
    fail(ErrorKind::corrupt_file, "{}: tensor {} occurs twice", what, printable(tensors[twice.b].name));
  if (const Repeat twice = find_repeat(metadata, order_by(metadata, key), key))
    fail(ErrorKind::corrupt_file, "{}: __metadata__ key {} occurs twice", what, printable(metadata[twice.b].first));
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> bytes, const std::string& what) {
  ByteReader in(bytes, what);
  const uint64_t length = in.read<uint64_t>("header length");
  if (length > kSafetensorsHeaderMax)
    fail(ErrorKind::corrupt_file, "{}: header of {} bytes, the limit is {}", what, length, kSafetensorsHeaderMax);
  const std::string_view text = in.text(length, "header");
  if (!text.starts_with('{'))
    fail(ErrorKind::corrupt_file, "{}: header starts with \"{}\", not with \"{{\"", what, printable(text.substr(0, 1)));

  SafetensorsHeader header;
  const auto data = bytes.subspan(in.position());
  HeaderVisitor visitor(data, what, header);
  json::visit(text, what, visitor);
  require_unique_names(header, what);

  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(),
            [](const SafeTensor& a, const SafeTensor& b) { return a.data.data() < b.data.data(); });
  const std::byte* at = data.data();
  for (const SafeTensor& t : tensors) {
    if (t.data.data() != at)
      fail(ErrorKind::corrupt_file, "{}: tensor {} starts at byte {} of the data, the one before ends at {}", what,
           printable(t.name), t.data.data() - data.data(), at - data.data());
    at += t.data.size();
  }
  if (const size_t used = static_cast<size_t>(at - data.data()); used != data.size())
    fail(ErrorKind::corrupt_file, "{}: the tensors end at byte {} of {} bytes of data", what, used, data.size());
  return header;
}

}  // namespace hearth::formats
