#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "base/error.h"
#include "base/team.h"
#include "cpu/linear/layout.h"
#include "linear_cases.h"

namespace hearth::cpu {
namespace {

using namespace testing;

TEST(LinearMatrix, rows_equal_the_definition_bit_for_bit) {
  Team team(2);
  for (const PackedFormat& format : all_formats())
    for (const int64_t N : {1, 31, 33, 70}) {
      const int64_t K = awkward_K(format);
      const Weights w = random_weights(format, N, K, static_cast<uint64_t>(N));
      const Matrix m = Matrix::pack(w.view(), N % 2 ? &team : nullptr);
      std::vector<float> got(static_cast<size_t>(K)), want(static_cast<size_t>(K));
      for (int64_t n = 0; n < N; ++n) {
        m.row(n, got.data());
        decode_row(w.view(), n, want);
        for (size_t k = 0; k < got.size(); ++k)
          ASSERT_EQ(std::bit_cast<uint32_t>(got[k]), std::bit_cast<uint32_t>(want[k]))
              << name_of(format) << " [" << n << ", " << k << "] " << got[k] << " " << want[k];
      }
    }
}

TEST(LinearMatrix, packed_sizes_are_those_of_the_layout) {
  const struct {
    Codec codec;
    double bits;
  } cases[] = {{Codec::q4_1, 5},   {Codec::q4_k, 4.5}, {Codec::q5_k, 5.5}, {Codec::q6_k, 6.5625}, {Codec::q2_k, 3.125},
               {Codec::q5_0, 5.5}, {Codec::q8_0, 8.5}, {Codec::f16, 16},   {Codec::f32, 32}};
  for (const auto& c : cases) {
    const int64_t bytes = Matrix::packed_bytes({.codec = c.codec}, 64, 512) - kHeaderBytes;
    EXPECT_EQ(static_cast<double>(bytes) * 8 / (64 * 512), c.bits) << name_of(PackedFormat{.codec = c.codec});
  }
  EXPECT_EQ(Matrix::packed_bytes({Codec::affine, 4, 64, DType::bf16}, 64, 512) - kHeaderBytes, 64 * 512 * 9 / 16);
}

TEST(LinearMatrix, bytes_can_be_moved_and_viewed) {
  const Weights w = random_weights({.codec = Codec::q5_k}, 40, 256, 3);
  const Matrix m = Matrix::pack(w.view());
  Buffer copy(static_cast<int64_t>(m.bytes().size()));
  std::memcpy(copy.data(), m.bytes().data(), m.bytes().size());
  const Matrix v = Matrix::view({copy.data(), m.bytes().size()}, nullptr);
  EXPECT_EQ(v.N(), 40);
  EXPECT_EQ(v.K(), 256);
  EXPECT_EQ(v.format(), w.format);
  std::vector<float> a(256), b(256);
  for (int64_t n = 0; n < 40; ++n) {
    m.row(n, a.data());
    v.row(n, b.data());
    ASSERT_EQ(a, b);
  }
}

TEST(LinearMatrix, broken_bytes_are_refused) {
  const Weights w = random_weights({.codec = Codec::q4_1}, 32, 64, 4);
  const Matrix m = Matrix::pack(w.view());
  Buffer copy(static_cast<int64_t>(m.bytes().size()));
  const auto reset = [&] { std::memcpy(copy.data(), m.bytes().data(), m.bytes().size()); };
  const auto kind_of = [&](size_t size, size_t shift = 0) {
    try {
      Matrix::view({copy.data() + shift, size}, nullptr);
    } catch (const Error& e) {
      return e.kind();
    }
    ADD_FAILURE() << "accepted";
    return ErrorKind::io;
  };
  reset();
  EXPECT_EQ(kind_of(m.bytes().size() - 64), ErrorKind::corrupt_file);
  EXPECT_EQ(kind_of(16), ErrorKind::corrupt_file);
  EXPECT_EQ(kind_of(m.bytes().size() - 4, 4), ErrorKind::invalid_argument);
  for (size_t i = 0; i < 48; ++i) {  // every byte of the head counts
    reset();
    copy.data()[i] ^= std::byte{0x55};
    EXPECT_EQ(kind_of(m.bytes().size()), ErrorKind::corrupt_file) << "byte " << i;
  }
}

TEST(LinearMatrix, shapes_that_do_not_fit_the_format_are_refused) {
  Weights w = random_weights({.codec = Codec::q4_0}, 2, 64, 5);
  w.K = 48;
  EXPECT_THROW(Matrix::pack(w.view()), Error);
  w.K = 64;
  w.data.pop_back();
  EXPECT_THROW(Matrix::pack(w.view()), Error);
}

TEST(LinearMatrix, plain_weights_support_f32_alone) {
  for (const PackedFormat& f : plain_formats()) {
    const Matrix m = Matrix::pack(random_weights(f, 3, 32, 6).view());
    EXPECT_TRUE(m.supports(Core::f32));
    EXPECT_FALSE(m.supports(Core::s16));
    EXPECT_FALSE(m.supports(Core::s8));
  }
  for (const PackedFormat& f : integer_formats()) {
    const Matrix m = Matrix::pack(random_weights(f, 3, 256, 6).view());
    for (const Core core : {Core::f32, Core::s16, Core::s8}) EXPECT_TRUE(m.supports(core)) << name_of(f);
  }
}

}  // namespace
}  // namespace hearth::cpu
