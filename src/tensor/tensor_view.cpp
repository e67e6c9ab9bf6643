#include "tensor/tensor_view.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hearth {
namespace {

template <class T>
T load(const std::byte* p, int64_t i) {
  T value;
  std::memcpy(&value, p + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

}  // namespace

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kRankMax)
    fail(ErrorKind::invalid_argument, "a shape of {} dimensions, the limit is {}", dims.size(), kRankMax);
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  for (const int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(size_, d, &size_))
      fail(ErrorKind::invalid_argument, "shape [{}] is negative or wraps", fmt::join(dims, ", "));
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.dims(), ", ")); }

float TensorView::value(int64_t i) const {
  HEARTH_CHECK(i >= 0 && i < shape.size(), "value {} of {}", i, to_string(shape));
  const std::byte* p = bytes.data();
  switch (dtype) {
    case DType::f32: return load<float>(p, i);
    case DType::f16: return to_float(load<f16>(p, i));
    case DType::bf16: return to_float(load<bf16>(p, i));
    case DType::f64: return static_cast<float>(load<double>(p, i));
    case DType::i8: return static_cast<float>(load<int8_t>(p, i));
    case DType::u8:
    case DType::boolean: return static_cast<float>(load<uint8_t>(p, i));
    case DType::i32: return static_cast<float>(load<int32_t>(p, i));
    case DType::u32: return static_cast<float>(load<uint32_t>(p, i));
    case DType::i64: return static_cast<float>(load<int64_t>(p, i));
  }
  return 0;
}

void validate(const TensorView& t, std::string_view name) {
  int64_t want;
  if (__builtin_mul_overflow(t.shape.size(), static_cast<int64_t>(size_of(t.dtype)), &want) ||
      t.bytes.size() != static_cast<size_t>(want))
    fail(ErrorKind::corrupt_file, "{}: {} bytes, {} {} needs {} bytes a value", name, t.bytes.size(), name_of(t.dtype),
         to_string(t.shape), size_of(t.dtype));
}

void require_shape(const TensorView& t, const Shape& expected, std::string_view name) {
  if (!(t.shape == expected))
    fail(ErrorKind::corrupt_file, "{}: shape is {}, expected {}", name, to_string(t.shape), to_string(expected));
}

void require_dtype(const TensorView& t, DType expected, std::string_view name) {
  if (t.dtype != expected)
    fail(ErrorKind::corrupt_file, "{}: dtype is {}, expected {}", name, name_of(t.dtype), name_of(expected));
}

void copy_f32(const TensorView& t, std::span<float> out) {
  if (out.size() != static_cast<size_t>(t.shape.size()))
    fail(ErrorKind::invalid_argument, "{} values of {} into {}", t.shape.size(), to_string(t.shape), out.size());
  if (t.dtype == DType::f32) std::memcpy(out.data(), t.bytes.data(), out.size_bytes());
  else
    for (size_t i = 0; i < out.size(); ++i) out[i] = t.value(static_cast<int64_t>(i));
}

}  // namespace hearth
