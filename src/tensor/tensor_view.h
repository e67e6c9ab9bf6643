// A typed view of bytes that somebody else owns.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace hearth {

constexpr int kRankMax = 8;

class Shape {
 public:
  Shape() = default;
  // Throw Error{invalid_argument} beyond kRankMax dimensions, for a negative one, or when the product passes 2^63 - 1.
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }  // 0 <= i < rank()
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t size() const { return size_; }  // product; 1 for rank 0
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kRankMax> dims_{};
  int64_t size_ = 1;
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[2048, 1536]"

// Row-major, outermost dimension first. The bytes need no alignment: read through value() or copy().
struct TensorView {
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;

  // Any float dtype or integer as fp32; f64 and wide integers are rounded. 0 <= i < shape.size().
  float value(int64_t i) const;
};

// Throws Error{corrupt_file} naming `name` when the byte count is not shape.size() elements.
void validate(const TensorView& t, std::string_view name);

// Throws Error{corrupt_file} "<name>: shape is [..], expected [..]" / "<name>: dtype is .., expected ..".
void require_shape(const TensorView& t, const Shape& expected, std::string_view name);
void require_dtype(const TensorView& t, DType expected, std::string_view name);

// All values as fp32. Throws Error{invalid_argument} when out has another size.
void copy_f32(const TensorView& t, std::span<float> out);

}  // namespace hearth
