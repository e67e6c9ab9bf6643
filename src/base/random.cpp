#include "base/random.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"

namespace hearth {

uint64_t SplitMix64::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Random::Random(uint64_t seed) {
  SplitMix64 words(seed);
  for (uint64_t& word : state_) word = words.next();
}

Random::Random(const std::array<uint64_t, 4>& state) : state_(state) {
  HEARTH_CHECK((state[0] | state[1] | state[2] | state[3]) != 0, "a generator with an all-zero state");
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t bound) {
  HEARTH_CHECK(bound > 0, "a random number below 0");
  // The high word of next() * bound is uniform once the few low words that would count twice are thrown away.
  __extension__ using Wide = unsigned __int128;
  Wide product = Wide{next()} * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t rejected = -bound % bound;
    while (static_cast<uint64_t>(product) < rejected) product = Wide{next()} * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

int64_t Random::between(int64_t low, int64_t high) {
  HEARTH_CHECK(low <= high, "a random number between {} and {}", low, high);
  const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t step = width == 0 ? next() : below(width);  // 0: the whole range of int64_t
  return static_cast<int64_t>(static_cast<uint64_t>(low) + step);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));  // 1 - u is in (0, 1]
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

void fill_entropy(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(ErrorKind::io, "getrandom: no entropy for {} bytes: {}", out.size(), std::strerror(errno));
    out = out.subspan(static_cast<size_t>(got));
  }
}

uint64_t entropy64() {
  uint64_t word = 0;
  fill_entropy(std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

}  // namespace hearth
