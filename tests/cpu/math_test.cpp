// Errors of the elementary functions against fp64 over their whole range, as kernels/math.inl states them, and equal
// bits on every instruction set.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "cpu/kernel_table.h"

namespace hearth::cpu {
namespace {

// Every sign and exponent, random mantissas, and a dense grid around zero.
std::vector<float> arguments() {
  std::vector<float> x;
  std::mt19937 random(17);
  for (uint32_t top = 0; top < 512; ++top) {
    if (top % 256 == 255) continue;
    for (int i = 0; i < 200; ++i)
      x.push_back(std::bit_cast<float>(top << 23 | static_cast<uint32_t>(random() & 0x7fffff)));
  }
  for (int i = -40000; i <= 40000; ++i) x.push_back(static_cast<float>(i) * 0.0025f);
  return x;
}

double ulp(double y) {
  const float f = std::abs(static_cast<float>(y));
  return std::isfinite(f) ? double{std::nextafterf(f, INFINITY)} - f : INFINITY;
}

struct Function {
  const char* name;
  std::function<void(const KernelTable&, const float*, float*, int64_t)> run;
  double (*want)(double);
  double ulps, per_x;  // |error| <= ulps ulp + per_x |x|
};

auto act(graph::Activation f) {
  return [f](const KernelTable& k, const float* x, float* y, int64_t n) { k.act(f, x, y, n, DType::f32); };
}

TEST(Math, errors_and_equal_bits) {
  using graph::Activation;
  const Function functions[] = {
      {"exp", [](const KernelTable& k, const float* x, float* y, int64_t n) { k.exp(x, y, n); },
       [](double x) { return std::exp(x); }, 1, 0},
      {"tanh", act(Activation::tanh), [](double x) { return std::tanh(x); }, 2, 0},
      {"sigmoid", act(Activation::sigmoid), [](double x) { return 1 / (1 + std::exp(-x)); }, 3, 0},
      {"silu", act(Activation::silu), [](double x) { return x / (1 + std::exp(-x)); }, 3, 0x1p-24},
      {"gelu", act(Activation::gelu), [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 3, 0x1p-23},
      {"gelu_tanh", act(Activation::gelu_tanh),
       [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, 3, 0x1p-24},
  };
  const std::vector<float> x = arguments();
  const auto n = static_cast<int64_t>(x.size());
  for (const Function& f : functions) {
    std::vector<float> first;
    for (const Isa isa : available_isas()) {
      std::vector<float> y(x.size());
      f.run(kernel_table(isa), x.data(), y.data(), n);
      if (first.empty()) first = y;
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(first[i]), std::bit_cast<uint32_t>(y[i]))
            << f.name << "(" << x[i] << "), " << name_of(isa);
        const double want = f.want(x[i]);
        if (std::abs(want) < 0x1p-126) {  // denormal results may be 0
          ASSERT_LE(std::abs(y[i]), 0x1p-125) << f.name << "(" << x[i] << ")";
          continue;
        }
        if (!std::isfinite(static_cast<float>(want))) {
          ASSERT_EQ(y[i], static_cast<float>(want)) << f.name << "(" << x[i] << ")";
          continue;
        }
        const double error = std::abs(double{y[i]} - want);
        worst = std::max(worst, error / ulp(want));
        ASSERT_LE(error, f.ulps * ulp(want) + f.per_x * std::abs(double{x[i]}))
            << f.name << "(" << x[i] << ") = " << y[i] << ", not " << want;
      }
      RecordProperty(std::string(f.name) + " worst ulp", std::to_string(worst));
    }
  }
}

TEST(Math, specials) {
  const float inf = INFINITY, nan = NAN, x[4] = {inf, -inf, nan, 0};
  float y[4];
  for (const Isa isa : available_isas()) {
    kernel_table(isa).exp(x, y, 4);
    EXPECT_EQ(y[0], inf);
    EXPECT_EQ(y[1], 0);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1);
    kernel_table(isa).act(graph::Activation::tanh, x, y, 4, DType::f32);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], -1);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0);
  }
}

}  // namespace
}  // namespace hearth::cpu
