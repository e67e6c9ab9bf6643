#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace hearth {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr size_t kLanes = 8, kBlock = 16 * kLanes;
constexpr uint64_t kKey = 0x9fb21c651e98df25u;  // bits well mixed, unlike words that files hold

// Both halves of the product depend on all bits of both words; the factors are mixed in again, so that a product of 0
// hides neither of them.
uint64_t fold(uint64_t a, uint64_t b) {
  const Wide product = Wide{a} * b;
  return a ^ b ^ static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word_at(const std::byte* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

uint64_t mix(uint64_t h, const std::byte* pair) { return fold(h ^ word_at(pair), kKey ^ word_at(pair + 8)); }

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie");
  std::array<uint64_t, kLanes> h;
  for (size_t i = 0; i < kLanes; ++i) h[i] = kKey * (2 * i + 3);
  const std::byte* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= kBlock; p += kBlock, left -= kBlock)
    for (size_t i = 0; i < kLanes; ++i) h[i] = mix(h[i], p + 16 * i);
  if (left > 0) {
    std::array<std::byte, kBlock> last{};
    std::memcpy(last.data(), p, left);
    for (size_t i = 0; i < kLanes; ++i) h[i] = mix(h[i], last.data() + 16 * i);
  }
  uint64_t sum = bytes.size();
  for (const uint64_t each : h) sum = fold(sum ^ kKey, each);
  return fold(sum, kKey);
}

}  // namespace hearth
