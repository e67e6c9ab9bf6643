// The cores against float64 sums over decode(), within bounds derived from the definition, and against each other bit
// for bit: instruction sets, M, members, runs.
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <limits>

#include "linear_cases.h"

namespace hearth::cpu {
namespace {

using namespace testing;

std::vector<Core> cores_of(const PackedFormat& format) {
  const bool plain = format.codec <= Codec::bf16;
  return plain ? std::vector{Core::f32} : std::vector{Core::f32, Core::s16, Core::s8};
}

// The scale of x that a core works with, an element, by its definition.
std::vector<double> scales_of(Core core, const float* x, size_t K) {
  const size_t width = core == Core::s8 ? 32 : K;
  std::vector<double> scales(K);
  for (size_t begin = 0; begin < K; begin += width) {
    double top = 0;
    for (size_t i = begin; i < begin + width; ++i) top = std::max(top, std::fabs(double{x[i]}));
    const double sx = std::max(top / (core == Core::s8 ? 127 : 32512), 0x1p-100);
    for (size_t i = begin; i < begin + width; ++i) scales[i] = sx;
  }
  return scales;
}

struct Reference {
  double y, bound;
};

// sum x w in fp64, and the bound: |dx| <= sx / 2 (and two fp32 roundings of x / sx) times |w|; then for every fp32
// operation of the fold one rounding, 2^-24 of sums that never exceed sum `size` |x|, or half a denormal.
Reference reference(Core core, const std::vector<double>& w, const std::vector<double>& size, const float* x,
                    const std::vector<double>& scales) {
  constexpr double eps = 0x1p-24;
  double y = 0, rounding = 0, magnitude = 0;
  for (size_t k = 0; k < w.size(); ++k) {
    y += w[k] * x[k];
    double seen = std::fabs(double{x[k]});
    if (core != Core::f32) {
      const double dx = scales[k] * 0.5 + 4 * eps * seen;
      rounding += std::fabs(w[k]) * dx;
      seen += dx;
    }
    magnitude += size[k] * seen;
  }
  const double K = static_cast<double>(w.size()), operations = core == Core::f32 ? K : K / 16 * 4 + 4;
  return {y, rounding + operations * (eps * 1.01 * magnitude + 0x1p-150)};
}

// |s (q - zero)| + |b| an element: what the fold adds up before cancellation.
std::vector<double> element_sizes(const PackedTensor& t, int64_t n, const std::vector<double>& w) {
  std::vector<double> size(w.size());
  for (size_t i = 0; i < w.size(); ++i) size[i] = std::fabs(w[i]);
  if (!is_integer_format(t.format)) return size;
  const IntegerForm form = integer_form(t.format);
  const size_t groups = w.size() / static_cast<size_t>(form.group);
  std::vector<uint8_t> q(w.size());
  std::vector<float> s(groups), b(groups);
  unpack_row(t, n, q.data(), s.data(), b.data());
  for (size_t i = 0; i < w.size(); ++i) {
    const size_t g = i / static_cast<size_t>(form.group);
    size[i] = std::fabs(double{s[g]} * (q[i] - form.zero)) + (form.has_bias ? std::fabs(double{b[g]}) : 0);
  }
  return size;
}

void check(const Weights& weights, const std::vector<float>& x, int64_t M, const std::vector<float>& y, Core core,
           const std::string& where) {
  const PackedTensor t = weights.view();
  const size_t N = static_cast<size_t>(t.N), K = static_cast<size_t>(t.K);
  std::vector<std::vector<double>> scales;
  for (size_t m = 0; m < static_cast<size_t>(M); ++m) scales.push_back(scales_of(core, &x[m * K], K));
  for (size_t n = 0; n < N; ++n) {
    std::vector<float> row(K);
    decode_row(t, static_cast<int64_t>(n), row);
    const std::vector<double> w(row.begin(), row.end()), size = element_sizes(t, static_cast<int64_t>(n), w);
    for (size_t m = 0; m < static_cast<size_t>(M); ++m) {
      const Reference r = reference(core, w, size, &x[m * K], scales[m]);
      ASSERT_LE(std::fabs(y[m * N + n] - r.y), r.bound)
          << where << " [" << m << ", " << n << "] is " << y[m * N + n] << ", should be " << r.y;
    }
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

TEST(LinearCore, instruction_sets_of_this_machine) {
  for (const Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::amx}) {
    std::cout << "[ isa      ] " << name_of(isa) << (available(isa) ? ": tested" : ": NOT TESTED, this CPU lacks it")
              << "\n";
    RecordProperty(std::string(name_of(isa)), available(isa) ? "tested" : "absent");
  }
  EXPECT_TRUE(available(Isa::generic));
}

TEST(LinearCore, every_format_core_and_isa_is_within_its_bound) {
  uint64_t seed = 100;
  for (const PackedFormat& format : all_formats()) {
    const int64_t K = awkward_K(format), N = 70, M = 19;
    const Weights w = random_weights(format, N, K, ++seed);
    const Matrix matrix = Matrix::pack(w.view());
    const std::vector<float> x = random_rows(M, K, ++seed);
    for (const Core core : cores_of(format)) {
      const std::vector<float> first = multiply(matrix, x, M, {.core = core, .isa = Isa::generic});
      check(w, x, M, first, core, name_of(format) + " " + text(core));
      if (HasFatalFailure()) return;
      for (const Isa isa : available_isas())
        EXPECT_TRUE(same_bits(first, multiply(matrix, x, M, {.core = core, .isa = isa})))
            << name_of(format) << " " << text(core) << " " << name_of(isa);
    }
  }
}

TEST(LinearCore, a_row_does_not_depend_on_M_or_members) {
  uint64_t seed = 500;
  for (const PackedFormat& format : all_formats()) {
    const int64_t K = awkward_K(format), N = 101, M = 33;
    const Matrix matrix = Matrix::pack(random_weights(format, N, K, ++seed).view());
    const std::vector<float> x = random_rows(M, K, ++seed);
    for (const Isa isa : available_isas()) {
      if (isa == Isa::generic) continue;  // its own test below, on fewer cases
      for (const Core core : cores_of(format)) {
        const std::vector<float> all = multiply(matrix, x, M, {.core = core, .isa = isa});
        for (int64_t m = 1; m < M; ++m) {
          const std::vector<float> some = multiply(matrix, x, m, {.core = core, .isa = isa, .members = int(m % 3) + 1});
          ASSERT_TRUE(std::memcmp(some.data(), all.data(), some.size() * 4) == 0)
              << name_of(format) << " " << text(core) << " " << name_of(isa) << " M = " << m;
        }
      }
    }
  }
}

TEST(LinearCore, the_generic_kernels_do_not_depend_on_M_or_members) {
  for (const Codec codec : {Codec::q4_1, Codec::q6_k, Codec::bf16}) {
    const PackedFormat format{.codec = codec};
    const int64_t K = awkward_K(format), N = 70, M = 17;
    const Matrix matrix = Matrix::pack(random_weights(format, N, K, 7).view());
    const std::vector<float> x = random_rows(M, K, 8);
    for (const Core core : cores_of(format)) {
      const std::vector<float> all = multiply(matrix, x, M, {.core = core});
      for (const int64_t m : {1, 2, 3, 8, 9, 16}) {
        const std::vector<float> some = multiply(matrix, x, m, {.core = core, .members = int(m % 3) + 1});
        ASSERT_TRUE(std::memcmp(some.data(), all.data(), some.size() * 4) == 0) << text(core) << " M = " << m;
      }
    }
  }
}

TEST(LinearCore, edges_of_N_and_K) {
  uint64_t seed = 900;
  for (const Isa isa : available_isas())
    for (const Codec codec : {Codec::q4_1, Codec::q5_0, Codec::q8_0, Codec::f16})
      for (const int64_t K : {32, 96, 512, 544, 1056})
        for (const int64_t N : {1, 16, 17, 32, 64, 65, 96, 127}) {
          const Weights w = random_weights({.codec = codec}, N, K, ++seed);
          const Matrix matrix = Matrix::pack(w.view());
          for (const int64_t M : {1, 3, 9, 16}) {
            const std::vector<float> x = random_rows(M, K, ++seed);
            for (const Core core : cores_of(w.format)) {
              if (isa == Isa::generic && (K > 96 || M > 3)) continue;
              check(w, x, M, multiply(matrix, x, M, {.core = core, .isa = isa, .members = 2}), core,
                    name_of(w.format) + " " + text(core) + " N = " + std::to_string(N) + " K = " + std::to_string(K));
              if (HasFatalFailure()) return;
            }
          }
        }
}

TEST(LinearCore, plain_weights_take_any_K) {
  for (const Isa isa : available_isas())
    for (const PackedFormat& format : plain_formats())
      for (const int64_t K : {1, 5, 31, 257, 300}) {
        const Weights w = random_weights(format, 37, K, static_cast<uint64_t>(K));
        const Matrix matrix = Matrix::pack(w.view());
        const std::vector<float> x = random_rows(14, K, 9);
        for (const int64_t M : {1, 2, 3, 14})
          check(w, x, M, multiply(matrix, x, M, {.core = Core::f32, .isa = isa}), Core::f32, name_of(format));
      }
}

TEST(LinearCore, long_batches_cross_token_blocks) {
  const PackedFormat format{.codec = Codec::q4_1};
  const int64_t K = 64, N = 96, M = 611;
  const Matrix matrix = Matrix::pack(random_weights(format, N, K, 1).view());
  const std::vector<float> x = random_rows(M, K, 2);
  for (const Isa isa : available_isas())
    for (const Core core : {Core::f32, Core::s16, Core::s8}) {
      const std::vector<float> all = multiply(matrix, x, M, {.core = core, .isa = isa});
      for (const int members : {2, 3, 5})
        EXPECT_TRUE(same_bits(all, multiply(matrix, x, M, {.core = core, .isa = isa, .members = members})));
      for (const int64_t m : {0, 287, 288, 305, 610}) {
        const std::vector<float> row(x.begin() + m * K, x.begin() + (m + 1) * K);
        const std::vector<float> one = multiply(matrix, row, 1, {.core = core, .isa = isa});
        EXPECT_EQ(0, std::memcmp(one.data(), &all[static_cast<size_t>(m * N)], one.size() * 4)) << m;
      }
    }
}

TEST(LinearCore, bias_and_accumulation_are_single_additions) {
  const PackedFormat format{.codec = Codec::q5_1};
  const int64_t K = 96, N = 45;
  const Matrix matrix = Matrix::pack(random_weights(format, N, K, 11).view());
  for (const int64_t M : {1, 12}) {
    const std::vector<float> x = random_rows(M, K, 12), bias = random_rows(1, N, 13), old = random_rows(M, N, 14);
    for (const Isa isa : available_isas())
      for (const Core core : {Core::f32, Core::s16, Core::s8}) {
        const std::vector<float> plain = multiply(matrix, x, M, {.core = core, .isa = isa});
        const std::vector<float> y =
            multiply(matrix, x, M, {.core = core, .isa = isa, .bias = bias.data(), .add_to = old.data()});
        for (size_t i = 0; i < y.size(); ++i) {
          const float with_bias = plain[i] + bias[i % static_cast<size_t>(N)];
          ASSERT_EQ(y[i], old[i] + with_bias);
        }
      }
  }
}

TEST(LinearCore, unusual_rows) {
  const float inf = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  const int64_t K = 64, N = 40, M = 10;
  std::vector<float> x = random_rows(M, K, 21);
  const auto row = [&](int64_t m) { return x.begin() + m * K; };
  std::fill(row(0), row(1), 0.0f);
  std::fill(row(1), row(2), -0.0f);
  for (int64_t k = 0; k < K; ++k) row(2)[k] = tiny * static_cast<float>(k);
  for (int64_t k = 0; k < K; ++k) row(3)[k] *= 1e-33f;
  for (int64_t k = 0; k < K; ++k) row(4)[k] = k % 2 ? 3e38f : 1e-38f;
  row(5)[7] = inf;
  row(6)[40] = std::nanf("");
  row(7)[63] = -inf;
  row(8)[0] = 1e30f;
  for (const Codec codec : {Codec::q4_1, Codec::q8_0, Codec::q5_0}) {
    const Weights w = random_weights({.codec = codec}, N, K, 22);
    const Matrix matrix = Matrix::pack(w.view());
    for (const Isa isa : available_isas())
      for (const Core core : {Core::f32, Core::s16, Core::s8}) {
        for (const int64_t M_now : {M, int64_t{8}}) {
          const std::vector<float> y = multiply(matrix, x, M_now, {.core = core, .isa = isa});
          for (int64_t m = 0; m < M_now; ++m)
            for (int64_t n = 0; n < N; ++n) {
              const float v = y[static_cast<size_t>(m * N + n)];
              const bool broken = m == 5 || m == 6 || m == 7;
              if (m < 2) {
                ASSERT_EQ(v, 0.0f);
              } else if (!broken) {
                ASSERT_TRUE(std::isfinite(v) || m == 4) << m << " " << text(core);
              } else {
                ASSERT_FALSE(std::isfinite(v)) << m;
                ASSERT_TRUE(std::isnan(v) || core == Core::f32) << m;
              }
            }
        }
        std::vector<float> fine(row(0), row(4));
        fine.insert(fine.end(), row(8), row(10));
        check(w, fine, 6, multiply(matrix, fine, 6, {.core = core, .isa = isa}), core, name_of(w.format));
      }
  }
}

}  // namespace
}  // namespace hearth::cpu
