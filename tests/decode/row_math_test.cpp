// Fast searches against looking at everything.
#include "decode/row_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "decode/philox.h"
#include "decode/row_kernels.h"
#include "support/scale.h"

namespace hearth::decode {
namespace {

using Floats = std::vector<float>;
constexpr float kInf = std::numeric_limits<float>::infinity();

int32_t look_at_all(const GumbelSearch& search, const Floats& l, const std::function<double(float)>& score) {
  int32_t best = -1;
  double top = 0;
  for (size_t i = 0; i < l.size(); ++i) {
    if (!(l[i] > -kInf)) continue;
    const double u = philox_uniform(search.seed, search.step, static_cast<uint32_t>(i), search.stream);
    const double g = score(l[i]) - std::log(-std::log(u));
    if (best < 0 || g > top) {
      best = static_cast<int32_t>(i);
      top = g;
    }
  }
  return best;
}

// Peaked, flat, far, tied and cut rows; steep, level and bent scores.
TEST(GumbelSearch, takes_what_looking_at_all_takes) {
  Random random(9);
  int32_t seen = 0;
  for (int64_t round = 0; round < test::scaled(800); ++round) {
    Floats l(1 + random.below(round % 20 ? 700 : 20'000));
    const double spread = std::exp(random.uniform() * 9 - 4);
    for (float& v : l) v = static_cast<float>(-spread * std::fabs(random.normal()));
    if (random.below(3) == 0)
      for (float& v : l) v = std::round(v);
    if (random.below(3) == 0)
      for (float& v : l) v = random.below(2) ? v : -kInf;
    if (random.below(8) == 0) l[random.below(l.size())] = -1e30f;
    if (random.below(8) == 0) l[random.below(l.size())] = 3;
    const float top = highest(l);
    if (!(top > -kInf)) continue;
    const double t = std::exp(random.uniform() * 8 - 5);
    const std::function<double(float)> scores[] = {
        [&](float v) { return (v - double{top}) / t; }, [&](float v) { return (v - double{top}) / 1e-320; },
        [](float) { return 0.0; },
        [](float v) { return v > -3 ? double{v} : -3 - 4 * std::log(1 + (-double{v} - 3) / 4); },
        [](float v) { return std::floor(double{v}); }};
    const GumbelSearch search{.seed = random.next(), .step = random.next(), .stream = static_cast<uint32_t>(round % 3)};
    for (const auto& score : scores) {
      const int32_t want = look_at_all(search, l, score);
      ASSERT_EQ(search.run(l, score), want) << "round " << round << ", V " << l.size() << ", T " << t;
      seen = std::max(seen, want);
    }
  }
  EXPECT_GT(seen, 1000);
  const Floats none(5, -kInf);
  EXPECT_EQ(GumbelSearch{}.run(none, [](float v) { return double{v}; }), -1);
}

TEST(LogSum, is_the_sum_in_double_to_fp32_terms) {
  Random random(2);
  for (const size_t V : {1, 15, 16, 17, 255, 256, 257, 511, 3000, 49152}) {
    Floats z(V);
    double sum = 0;
    for (float& v : z) v = static_cast<float>(4 * random.normal());
    const float top = highest(z);
    for (const float v : z) sum += std::exp(double{v} - top);
    EXPECT_NEAR(log_sum_below(z, top), std::log(sum), 0x1p-22 + 40 * 0x1p-24) << V;
  }
}

TEST(RowKernels, agree_to_the_bit_on_every_instruction_set) {
  Random random(5);
  const std::vector<RowKernels> all = row_kernels();
  for (int round = 0; round < 50; ++round) {
    Floats z(2 * kRowBlock);
    for (float& v : z) v = static_cast<float>(-5 * std::fabs(random.normal()));
    z[random.below(z.size())] = NAN;
    z[random.below(z.size())] = -kInf;
    const NoiseKey key{.step = {static_cast<uint32_t>(random.next()), static_cast<uint32_t>(round)},
                       .stream = 1,
                       .seed = {static_cast<uint32_t>(random.next()), static_cast<uint32_t>(random.next())}};
    std::vector<double> sums;
    Floats less;
    NoiseBlock noise{};
    for (const RowKernels& k : all) {
      EXPECT_EQ(k.highest(z.data(), z.size() - 5), all.front().highest(z.data(), z.size() - 5));
      std::vector<double> sum(kRowLanes, 0.5);
      k.add_exps(z.data(), z.size(), 0, sum.data());
      Floats copy = z;
      k.subtract(copy.data(), copy.size() - 3, 1.25);
      for (float& v : copy)
        if (std::isnan(v)) v = 7;  // among the last three, which are left alone
      NoiseBlock block{};
      k.add_noise(z.data(), 1000, key, block);
      if (&k == &all.front()) {
        sums = sum;
        less = copy;
        noise = block;
        for (size_t i = 0; i < kRowBlock; ++i)
          ASSERT_EQ(block.words[i], philox({key.step[0], key.step[1], 1000 + static_cast<uint32_t>(i), 1},
                                           {key.seed[0], key.seed[1]})[0]);
      }
      EXPECT_EQ(sum, sums);
      EXPECT_EQ(copy, less);
      EXPECT_TRUE(std::ranges::equal(block.words, noise.words));
      EXPECT_TRUE(std::ranges::equal(block.word_max, noise.word_max));
      EXPECT_TRUE(std::ranges::equal(block.value_max, noise.value_max));
      EXPECT_EQ(block.word_max[3], [&] {
        uint32_t most = 0;
        for (size_t i = 3; i < kRowBlock; i += kRowLanes) most = std::max(most, block.words[i]);
        return most;
      }());
    }
  }
}

TEST(IndicesAbove, in_order) {
  const Floats z = {1, -kInf, 3, NAN, 2, 1};
  int32_t ids[6];
  ASSERT_EQ(indices_above(z, 1, ids), 2u);
  EXPECT_EQ(ids[0], 2);
  EXPECT_EQ(ids[1], 4);
  EXPECT_EQ(indices_above(z, -kInf, ids), 4u);
}

}  // namespace
}  // namespace hearth::decode
