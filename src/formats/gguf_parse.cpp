#include "formats/gguf_parse.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "formats/byte_reader.h"

namespace hearth::formats {
namespace {

struct TypeName {
  uint32_t type;
  std::string_view name;
  std::optional<Codec> codec;
};

// Tensor types by their number in the file; those without a codec are known by name only.
constexpr TypeName kTensorTypes[] = {
    {0, "F32", Codec::f32},        {1, "F16", Codec::f16},        {2, "Q4_0", Codec::q4_0},
    {3, "Q4_1", Codec::q4_1},      {6, "Q5_0", Codec::q5_0},      {7, "Q5_1", Codec::q5_1},
    {8, "Q8_0", Codec::q8_0},      {9, "Q8_1", std::nullopt},     {10, "Q2_K", Codec::q2_k},
    {11, "Q3_K", Codec::q3_k},     {12, "Q4_K", Codec::q4_k},     {13, "Q5_K", Codec::q5_k},
    {14, "Q6_K", Codec::q6_k},     {15, "Q8_K", std::nullopt},    {16, "IQ2_XXS", std::nullopt},
    {17, "IQ2_XS", std::nullopt},  {18, "IQ3_XXS", std::nullopt}, {19, "IQ1_S", std::nullopt},
    {20, "IQ4_NL", Codec::iq4_nl}, {21, "IQ3_S", std::nullopt},   {22, "IQ2_S", std::nullopt},
    {23, "IQ4_XS", Codec::iq4_xs}, {24, "I8", std::nullopt},      {25, "I16", std::nullopt},
    {26, "I32", std::nullopt},     {27, "I64", std::nullopt},     {28, "F64", std::nullopt},
    {29, "IQ1_M", std::nullopt},   {30, "BF16", Codec::bf16},     {34, "TQ1_0", std::nullopt},
    {35, "TQ2_0", std::nullopt},   {39, "MXFP4", Codec::mxfp4},   {40, "NVFP4", std::nullopt},
};

Codec codec_of(uint32_t type, const std::string& what, std::string_view tensor) {
  std::string_view name = "unknown";
  for (const TypeName& known : kTensorTypes)
    if (known.type == type) {
      if (known.codec) return *known.codec;
      name = known.name;
    }
  std::string supported;
  for (const TypeName& known : kTensorTypes)
    if (known.codec) supported += fmt::format(" {}", known.name);
  fail(ErrorKind::invalid_argument, "{}: tensor {} has type {} ({}); supported are{}", what, printable(tensor), type,
       name, supported);
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& what, const GgufLimits& limits)
      : bytes_(bytes), what_(what), limits_(limits), in_(bytes, what_) {}

  int run(std::deque<GgufValue>& values, std::deque<GgufTensor>& tensors) {
    const uint32_t version = header();
    const uint64_t tensor_count = in_.read<uint64_t>("tensor count");
    const uint64_t key_count = in_.read<uint64_t>("key count");
    // A key takes at least 8 + 1 + 4 + 1 bytes, a tensor 8 + 1 + 4 + 8 + 4 + 8.
    require_count("keys", key_count, limits_.keys_max, 14);
    require_count("tensors", tensor_count, limits_.tensors_max, 33);
    for (uint64_t i = 0; i < key_count; ++i) values.push_back(value());

    alignment_ = alignment(values);

    const size_t first = tensors.size();
    std::deque<uint64_t> offsets;
    for (uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(tensor(offsets));
    place(tensors, first, offsets);
    return static_cast<int>(version);
  }

 private:
  uint32_t header() {
    const std::string_view magic = in_.text(4, "magic");
    if (magic != "GGUF")
      fail(ErrorKind::corrupt_file, "{}: not a GGUF file: it starts with \"{}\"", what_, printable(magic));
    const uint32_t version = in_.read<uint32_t>("version");
    if (version == 2 || version == 3) return version;
    if (version > 0xffff)
      fail(ErrorKind::invalid_argument, "{}: GGUF version {:#x}: big-endian files are not supported", what_, version);
    fail(ErrorKind::invalid_argument, "{}: GGUF version {}; supported are 2 and 3", what_, version);
  }

  void require_count(const char* kind, uint64_t count, uint64_t max, uint64_t bytes_each) {
    if (count > max) fail(ErrorKind::corrupt_file, "{}: {} {}, the limit is {}", what_, count, kind, max);
    if (count > in_.remaining() / bytes_each)
      fail(ErrorKind::corrupt_file, "{}: {} {} need {} bytes at least, {} are left at byte {}", what_, count, kind,
           count * bytes_each, in_.remaining(), in_.position());
  }

  // `field` is only formatted when the string is bad, so it is a callable.
  template <class Field>
  std::string_view string(const Field& field) {
    const size_t at = in_.position();
    if (in_.remaining() < 8)
      fail(ErrorKind::corrupt_file, "{}: length of {} at byte {} needs 8 bytes, {} are left", what_, field(), at,
           in_.remaining());
    const uint64_t size = in_.read<uint64_t>("");
    if (size > limits_.string_bytes_max)
      fail(ErrorKind::corrupt_file, "{}: {} at byte {} has {} bytes, the limit is {}", what_, field(), at, size,
           limits_.string_bytes_max);
    if (size > in_.remaining())
      fail(ErrorKind::corrupt_file, "{}: {} at byte {} needs {} bytes, {} are left", what_, field(), at + 8, size,
           in_.remaining());
    return in_.text(size, "");
  }

  GgufType type(std::string_view key, const char* role) {
    const size_t at = in_.position();
    const uint32_t number = in_.read<uint32_t>("value type");
    if (number > static_cast<uint32_t>(GgufType::f64))
      fail(ErrorKind::corrupt_file, "{}: {} at byte {}: {} {} is unknown", what_, printable(key), at, role, number);
    return static_cast<GgufType>(number);
  }

  GgufValue value() {
    GgufValue v;
    const size_t at = in_.position();
    v.key = string([] { return "key"; });
    if (v.key.empty()) fail(ErrorKind::corrupt_file, "{}: key at byte {} is empty", what_, at);
    v.type = type(v.key, "type");
    if (v.type == GgufType::array) return array(v), v;
    if (v.type == GgufType::string) {
      const std::string_view text = string([&] { return printable(v.key); });
      v.bytes = std::as_bytes(std::span(text));
      return v;
    }
    v.bytes = in_.take(size_of(v.type), "value");
    if (v.type == GgufType::boolean) require_booleans(v);
    return v;
  }

  void array(GgufValue& v) {
    v.element = type(v.key, "element type");
    if (v.element == GgufType::array)
      fail(ErrorKind::corrupt_file, "{}: {}: an array of arrays is not supported", what_, printable(v.key));
    v.count = in_.read<uint64_t>("array length");
    if (v.count > limits_.array_max)
      fail(ErrorKind::corrupt_file, "{}: {} has {} elements, the limit is {}", what_, printable(v.key), v.count,
           limits_.array_max);
    const size_t begin = in_.position();
    if (v.element == GgufType::string) {
      if (v.count > in_.remaining() / 8)
        fail(ErrorKind::corrupt_file, "{}: {} has {} strings, {} bytes are left at byte {}", what_, printable(v.key),
             v.count, in_.remaining(), begin);
      for (uint64_t i = 0; i < v.count; ++i) string([&] { return fmt::format("{}[{}]", printable(v.key), i); });
      v.bytes = bytes_.subspan(begin, in_.position() - begin);
      return;
    }
    v.bytes = in_.take(v.count * size_of(v.element), "value");
    if (v.element == GgufType::boolean) require_booleans(v);
  }

  void require_booleans(const GgufValue& v) {
    for (const std::byte b : v.bytes)
      if (b > std::byte{1})
        fail(ErrorKind::corrupt_file, "{}: {}: a boolean is {}", what_, printable(v.key), static_cast<int>(b));
  }

  GgufTensor tensor(std::deque<uint64_t>& offsets) {
    GgufTensor t;
    const size_t at = in_.position();
    t.name = string([] { return "tensor name"; });
    if (t.name.empty()) fail(ErrorKind::corrupt_file, "{}: tensor name at byte {} is empty", what_, at);
    const uint32_t rank = in_.read<uint32_t>("tensor rank");
    if (rank < 1 || rank > 4)
      fail(ErrorKind::corrupt_file, "{}: tensor {} has {} dimensions, 1 to 4 are allowed", what_, printable(t.name),
           rank);
    t.rank = static_cast<int>(rank);
    uint64_t dims[4] = {1, 1, 1, 1}, rows = 1;
    for (uint32_t i = 0; i < rank; ++i) {
      dims[i] = in_.read<uint64_t>("tensor dimension");
      if (dims[i] == 0) fail(ErrorKind::corrupt_file, "{}: tensor {}: dimension {} is 0", what_, printable(t.name), i);
      if (dims[i] > static_cast<uint64_t>(INT64_MAX) || (i > 0 && __builtin_mul_overflow(rows, dims[i], &rows)))
        fail(ErrorKind::corrupt_file, "{}: tensor {}: dimension {} is {}, its size wraps", what_, printable(t.name), i,
             dims[i]);
      t.dims[i] = static_cast<int64_t>(dims[i]);
    }
    t.format.codec = codec_of(in_.read<uint32_t>("tensor type"), what_, t.name);
    const uint64_t block = static_cast<uint64_t>(values_per_block(t.format));
    if (dims[0] % block != 0)
      fail(ErrorKind::corrupt_file, "{}: tensor {}: K = {} is no multiple of {}, the block of {}", what_,
           printable(t.name), dims[0], block, name_of(t.format));
    // The size is compared with the file here, so that no later product can wrap.
    const uint64_t block_bytes = static_cast<uint64_t>(row_bytes(t.format, static_cast<int64_t>(block)));
    uint64_t size = 0;
    if (__builtin_mul_overflow(dims[0] / block, block_bytes, &size) || __builtin_mul_overflow(size, rows, &size) ||
        size > bytes_.size())
      fail(ErrorKind::corrupt_file, "{}: tensor {}: {} rows of {} {} values do not fit into a file of {} bytes", what_,
           printable(t.name), rows, dims[0], name_of(t.format), bytes_.size());
    t.data = bytes_.first(size);  // the size; place() finds the position
    offsets.push_back(in_.read<uint64_t>("tensor offset"));
    return t;
  }

  uint64_t alignment(const std::deque<GgufValue>& values) const {
    uint64_t bytes = 32;
    for (const GgufValue& v : values) {
      if (v.key != "general.alignment") continue;
      if (v.type != GgufType::u32)
        fail(ErrorKind::corrupt_file, "{}: general.alignment: expected a u32, found {}", what_, name_of(v.type));
      bytes = static_cast<uint64_t>(load_integer(v.type, v.bytes.data()));
      if (bytes < 8 || !std::has_single_bit(bytes))
        fail(ErrorKind::corrupt_file, "{}: general.alignment is {}, it must be a power of two >= 8", what_, bytes);
    }
    return bytes;
  }

  // Offsets count from the first aligned byte after the header.
  void place(std::deque<GgufTensor>& tensors, size_t first, const std::deque<uint64_t>& offsets) {
    if (offsets.empty()) return;
    const uint64_t begin = (in_.position() + alignment_ - 1) / alignment_ * alignment_;
    for (size_t i = 0; i < offsets.size(); ++i) {
      GgufTensor& t = tensors[first + i];
      const uint64_t size = t.data.size();
      if (offsets[i] % alignment_ != 0)
        fail(ErrorKind::corrupt_file, "{}: tensor {}: offset {} is no multiple of the alignment {}", what_,
             printable(t.name), offsets[i], alignment_);
      if (begin > bytes_.size() || offsets[i] > bytes_.size() - begin || size > bytes_.size() - begin - offsets[i])
        fail(ErrorKind::corrupt_file,
             "{}: tensor {}: {} bytes at offset {} of the data at byte {} end outside the file "
             "of {} bytes",
             what_, printable(t.name), size, offsets[i], begin, bytes_.size());
      t.data = bytes_.subspan(begin + offsets[i], size);
    }
    std::vector<uint32_t> order(offsets.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return offsets[a] < offsets[b]; });
    for (size_t i = 1; i < order.size(); ++i) {
      const GgufTensor &a = tensors[first + order[i - 1]], &b = tensors[first + order[i]];
      if (offsets[order[i]] - offsets[order[i - 1]] < a.data.size())
        fail(ErrorKind::corrupt_file, "{}: tensors {} and {} overlap: {} bytes at offset {}, next at {}", what_,
             printable(a.name), printable(b.name), a.data.size(), offsets[order[i - 1]], offsets[order[i]]);
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& what_;
  const GgufLimits& limits_;
  ByteReader in_;
  uint64_t alignment_ = 32;
};

}  // namespace

std::string_view name_of(GgufType type) {
  static constexpr std::string_view kNames[] = {"u8",      "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "boolean", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

size_t size_of(GgufType type) {
  static constexpr uint8_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<size_t>(type)];
}

namespace {

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

}  // namespace

int64_t load_integer(GgufType type, const std::byte* p) {
  switch (type) {
    case GgufType::u8: return load<uint8_t>(p);
    case GgufType::i8: return load<int8_t>(p);
    case GgufType::u16: return load<uint16_t>(p);
    case GgufType::i16: return load<int16_t>(p);
    case GgufType::u32: return load<uint32_t>(p);
    case GgufType::i32: return load<int32_t>(p);
    case GgufType::i64: return load<int64_t>(p);
    case GgufType::u64: return static_cast<int64_t>(std::min<uint64_t>(load<uint64_t>(p), INT64_MAX));
    default: HEARTH_CHECK(false, "{} is no integer", name_of(type));
  }
  return 0;
}

double load_number(GgufType type, const std::byte* p) {
  if (type == GgufType::f32) return static_cast<double>(load<float>(p));
  if (type == GgufType::f64) return load<double>(p);
  if (type == GgufType::u64) return static_cast<double>(load<uint64_t>(p));
  return static_cast<double>(load_integer(type, p));
}

int parse_gguf(std::span<const std::byte> bytes, const std::string& what, const GgufLimits& limits,
               std::deque<GgufValue>& values, std::deque<GgufTensor>& tensors) {
  return Parser(bytes, what, limits).run(values, tensors);
}

}  // namespace hearth::formats
