// Philox4x32-10 (Salmon et al. 2011): noise as a pure function of (key, counter), the same on every executor and in any
// batch.
#pragma once
#include <array>
#include <cstdint>

namespace hearth::decode {

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0], b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// Uniform in (0, 1): the middle of one of 2^32 cells.
inline double philox_uniform(uint64_t seed, uint64_t step, uint32_t index, uint32_t stream) {
  const auto r = philox({static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), index, stream},
                        {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return (r[0] + 0.5) * 0x1p-32;
}

}  // namespace hearth::decode
