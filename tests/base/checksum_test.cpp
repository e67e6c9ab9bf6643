#include "base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"

namespace hearth {
namespace {

std::vector<std::byte> random_bytes(size_t size, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

// Files hold these values: they may never change.
TEST(Checksum, values_are_fixed) {
  EXPECT_EQ(checksum({}), 16054486473964182373u);
  std::vector<std::byte> counting(1000);
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<std::byte>(i);
  EXPECT_EQ(checksum(counting), 13875771892130886399u);
}

TEST(Checksum, every_flipped_bit_shows) {
  for (const size_t size : {1u, 7u, 8u, 63u, 64u, 65u, 200u, 1025u}) {
    std::vector<std::byte> bytes = random_bytes(size, size);
    const uint64_t sum = checksum(bytes);
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
      EXPECT_NE(checksum(bytes), sum) << size << " bytes, bit " << bit;
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
    }
  }
}

// Flips that cancel each other are what simple sums miss.
TEST(Checksum, two_flipped_bits_show) {
  std::vector<std::byte> bytes = random_bytes(256, 1);
  const uint64_t sum = checksum(bytes);
  for (size_t a = 0; a < 8 * bytes.size(); a += 3)
    for (size_t b = a + 1; b < 8 * bytes.size(); ++b) {
      bytes[a / 8] ^= std::byte{1} << a % 8;
      bytes[b / 8] ^= std::byte{1} << b % 8;
      ASSERT_NE(checksum(bytes), sum) << a << " and " << b;
      bytes[a / 8] ^= std::byte{1} << a % 8;
      bytes[b / 8] ^= std::byte{1} << b % 8;
    }
}

TEST(Checksum, lengths_zeros_and_order_count) {
  std::set<uint64_t> sums;
  for (size_t size = 0; size < 600; ++size) sums.insert(checksum(std::vector<std::byte>(size)));
  EXPECT_EQ(sums.size(), 600u);

  std::vector<std::byte> bytes = random_bytes(4096, 2);
  const uint64_t sum = checksum(bytes);
  for (const size_t block : {8u, 16u, 64u, 128u, 512u, 2048u}) {
    std::vector<std::byte> swapped = bytes;
    std::swap_ranges(swapped.begin(), swapped.begin() + static_cast<long>(block),
                     swapped.begin() + static_cast<long>(block));
    EXPECT_NE(checksum(swapped), sum) << block;
  }
  EXPECT_NE(checksum(std::span(bytes).first(4095)), sum);
}

TEST(Checksum, does_not_depend_on_alignment) {
  const std::vector<std::byte> bytes = random_bytes(777, 3);
  std::vector<std::byte> moved(bytes.size() + 8);
  for (size_t by = 0; by < 8; ++by) {
    std::copy(bytes.begin(), bytes.end(), moved.begin() + static_cast<long>(by));
    EXPECT_EQ(checksum(std::span(moved).subspan(by, bytes.size())), checksum(bytes));
  }
}

}  // namespace
}  // namespace hearth
