// Philox4x32-10 against the known answers of its authors' test file (kat_vectors, Random123 1.14) and a second
// implementation in Python:
//   def philox(c, k):
//     for _ in range(10):
//       a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
//       c = [b >> 32 ^ c[1] ^ k[0], b & M, a >> 32 ^ c[3] ^ k[1], a & M]     # M = 2**32 - 1
//       k = [k[0] + 0x9E3779B9 & M, k[1] + 0xBB67AE85 & M]
//     return c
#include "decode/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth::decode {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Philox, known_answers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kAll = 0xffffffff;
  EXPECT_EQ(philox({kAll, kAll, kAll, kAll}, {kAll, kAll}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, uniform_depends_on_every_word_and_stays_inside) {
  std::set<double> seen;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
    for (const uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
      for (const uint32_t index : {0u, 1u, 0xffffffffu})
        for (const uint32_t stream : {0u, 1u}) {
          const double u = philox_uniform(seed, step, index, stream);
          EXPECT_GT(u, 0);
          EXPECT_LT(u, 1);
          seen.insert(u);
        }
  EXPECT_EQ(seen.size(), 3u * 3 * 3 * 2);
}

}  // namespace
}  // namespace hearth::decode
