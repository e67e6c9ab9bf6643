// Register-only loops of each instruction set, and the plain read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::probe {

inline constexpr int64_t kPeakIterations = 2'000'000;
inline constexpr int64_t kDependentAdds = 50'000'000;

struct PeakLoop {
  const char* name;
  double ops_per_iteration;
  void (*run)(int64_t iterations);
};
// Those that this CPU can run.
std::span<const PeakLoop> peak_loops();

// Loads every byte once, with the widest loads of this CPU; bytes a multiple of 256.
void read_bytes(const std::byte* data, int64_t bytes);

void dependent_adds();  // kDependentAdds of one cycle each, in a chain

}  // namespace hearth::probe
