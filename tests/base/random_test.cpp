#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace hearth {
namespace {

// First outputs of the authors' splitmix64.c for the seed 1234567.
TEST(SplitMix64, gives_the_published_sequence) {
  SplitMix64 words(1234567);
  for (const uint64_t want :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u, 16408922859458223821u})
    EXPECT_EQ(words.next(), want);
}

// First outputs of the authors' xoshiro256starstar.c for the state 1, 2, 3, 4.
TEST(Random, gives_the_published_sequence) {
  Random random(std::array<uint64_t, 4>{1, 2, 3, 4});
  for (const uint64_t want :
       {uint64_t{11520}, uint64_t{0}, uint64_t{1509978240}, uint64_t{1215971899390074240},
        uint64_t{1216172134540287360}, uint64_t{607988272756665600}, uint64_t{16172922978634559625u},
        uint64_t{8476171486693032832}, uint64_t{10595114339597558777u}, uint64_t{2904607092377533576}})
    EXPECT_EQ(random.next(), want);
}

TEST(Random, a_seed_fixes_the_sequence) {
  Random a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t word = a.next();
    EXPECT_EQ(word, b.next());
    differs = differs || word != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, below_is_uniform) {
  Random random(1);
  EXPECT_EQ(random.below(1), 0u);
  constexpr int kDraws = 100'000, kCells = 10;
  std::vector<int> count(kCells);
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t cell = random.below(kCells);
    ASSERT_LT(cell, uint64_t{kCells});
    ++count[cell];
  }
  double chi_square = 0;
  for (const int n : count) chi_square += std::pow(n - kDraws / kCells, 2) / (kDraws / kCells);
  EXPECT_LT(chi_square, 27.9);  // 9 degrees of freedom, p = 0.001
  for (int i = 0; i < 1000; ++i) ASSERT_LT(random.below(UINT64_MAX), UINT64_MAX);
}

TEST(Random, between_includes_both_ends) {
  Random random(2);
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.between(-2, 2));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(random.between(5, 5), 5);
  bool low = false, high = false;
  for (int i = 0; i < 100; ++i) (random.between(INT64_MIN, INT64_MAX) < 0 ? low : high) = true;
  EXPECT_TRUE(low && high);
}

// Mean and variance within 5 standard errors.
TEST(Random, uniform_and_normal_have_their_moments) {
  Random random(3);
  constexpr int kDraws = 200'000;
  double sum = 0, normal_sum = 0, normal_square = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform(), z = random.normal();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_TRUE(std::isfinite(z));
    sum += u;
    normal_sum += z;
    normal_square += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(normal_sum / kDraws, 0.0, 5 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(normal_square / kDraws, 1.0, 5 * std::sqrt(2.0 / kDraws));
}

TEST(Entropy, differs_from_call_to_call_and_fills_everything) {
  EXPECT_NE(entropy64(), entropy64());
  std::vector<std::byte> bytes(4096);
  fill_entropy(bytes);
  std::set<std::byte> last(bytes.end() - 256, bytes.end());
  EXPECT_GT(last.size(), 50u);
  fill_entropy({});
}

}  // namespace
}  // namespace hearth
