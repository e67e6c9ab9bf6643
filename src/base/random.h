// Random numbers with a fixed meaning: the same seed gives the same sequence on every machine and in every release.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth {

// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit word of state. Makes seeds and states for the generator below.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next();

 private:
  uint64_t state_;
};

// xoshiro256** (Blackman, Vigna 2018), period 2^256 - 1. Usable with the standard library's distributions and shuffle,
// though those differ between libraries: where a result is kept, use the members here. Not for secrets.
class Random {
 public:
  using result_type = uint64_t;
  explicit Random(uint64_t seed);                         // state: four words of SplitMix64(seed)
  explicit Random(const std::array<uint64_t, 4>& state);  // as given; not all zero

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return UINT64_MAX; }
  uint64_t operator()() { return next(); }

  uint64_t next();
  uint64_t below(uint64_t bound);              // uniform in [0, bound), bound >= 1, without bias (Lemire 2019)
  int64_t between(int64_t low, int64_t high);  // uniform in [low, high], both ends included
  double uniform();                            // [0, 1), multiples of 2^-53
  double normal();                             // mean 0, variance 1 (Box-Muller; two uniforms a call)

 private:
  std::array<uint64_t, 4> state_;
};

// From the kernel's generator; fit for keys. Throws Error{io} where the kernel has none.
void fill_entropy(std::span<std::byte> out);
uint64_t entropy64();

}  // namespace hearth
