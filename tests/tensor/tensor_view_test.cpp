#include "tensor/tensor_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"

namespace hearth {
namespace {

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

template <class T>
std::vector<std::byte> bytes_of(std::initializer_list<T> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

TEST(Shape, size_is_the_product_and_cannot_wrap) {
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).size(), 24);
  EXPECT_EQ((Shape{2, 0}).size(), 0);
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
  EXPECT_TRUE((Shape{2, 3} == Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3} == Shape{2, 3, 1}));
  EXPECT_EQ(refusal([] { Shape{INT64_MAX, 2}; }), "shape [9223372036854775807, 2] is negative or wraps");
  EXPECT_EQ(refusal([] { Shape{2, -1}; }), "shape [2, -1] is negative or wraps");
  EXPECT_EQ(refusal([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), "a shape of 9 dimensions, the limit is 8");
}

TEST(TensorView, reads_every_dtype_at_any_alignment) {
  const std::pair<DType, std::vector<std::byte>> cases[] = {{DType::f32, bytes_of<float>({-1.5f, 3})},
                                                            {DType::f16, bytes_of<uint16_t>({0xbe00, 0x4200})},
                                                            {DType::bf16, bytes_of<uint16_t>({0xbfc0, 0x4040})},
                                                            {DType::f64, bytes_of<double>({-1.5, 3})},
                                                            {DType::i8, bytes_of<int8_t>({-2, 3})},
                                                            {DType::u8, bytes_of<uint8_t>({254, 3})},
                                                            {DType::i32, bytes_of<int32_t>({-2, 3})},
                                                            {DType::u32, bytes_of<uint32_t>({4294967295u, 3})},
                                                            {DType::i64, bytes_of<int64_t>({-2, 3})},
                                                            {DType::boolean, bytes_of<uint8_t>({1, 3})}};
  const float first[] = {-1.5f, -1.5f, -1.5f, -1.5f, -2, 254, -2, 4294967296.0f, -2, 1};
  for (size_t i = 0; i < std::size(cases); ++i) {
    const auto& [type, bytes] = cases[i];
    std::vector<std::byte> shifted(1);
    shifted.insert(shifted.end(), bytes.begin(), bytes.end());
    const TensorView view{type, {2}, std::span<const std::byte>(shifted).subspan(1)};
    validate(view, "t");
    EXPECT_EQ(view.value(0), first[i]) << name_of(type);
    float out[2];
    copy_f32(view, out);
    EXPECT_EQ(out[0], first[i]);
    EXPECT_EQ(out[1], 3.0f);
  }
}

TEST(TensorView, checks_name_the_tensor_and_the_numbers) {
  const std::vector<std::byte> bytes(24);
  const TensorView view{DType::f32, {2, 3}, bytes};
  EXPECT_EQ(refusal([&] { validate(view, "t"); }), "accepted");
  EXPECT_EQ(refusal([&] { validate({DType::f32, {2, 4}, bytes}, "t"); }),
            "t: 24 bytes, f32 [2, 4] needs 4 bytes a value");
  EXPECT_EQ(refusal([&] { validate({DType::f64, {INT64_MAX / 4}, bytes}, "t"); }),
            "t: 24 bytes, f64 [2305843009213693951] needs 8 bytes a value");
  EXPECT_EQ(refusal([&] { require_shape(view, {3, 2}, "t"); }), "t: shape is [2, 3], expected [3, 2]");
  EXPECT_EQ(refusal([&] { require_dtype(view, DType::u32, "t"); }), "t: dtype is f32, expected u32");
  std::vector<float> five(5);
  EXPECT_EQ(refusal([&] { copy_f32(view, five); }), "6 values of [2, 3] into 5");
}

}  // namespace
}  // namespace hearth
