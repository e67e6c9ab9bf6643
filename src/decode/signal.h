// What a model expects at one place, for a person to look at (spec server 3.2): a histogram of log-probabilities.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hearth::decode {

inline constexpr int64_t kSignalBins = 80, kSignalTop = 10;
inline constexpr double kSignalFloor = -13.815510557964274;  // ln 1e-6

struct Signal {
  // Bins of equal width over [kSignalFloor, 0], by log-probability; what lies below the floor belongs to bin 0.
  std::array<int64_t, kSignalBins> count{};     // tokens
  std::array<double, kSignalBins> mass{};       // their probabilities together
  double entropy = 0;                           // of the whole distribution, nats
  std::vector<std::pair<int32_t, double>> top;  // the likeliest ids with their log-probabilities, ties lower id first
};

// Of softmax(logits), in fp64. logits [V] as the model gave them; NaN counts as a token that is never drawn.
// Throws Error{corrupt_file} where none is finite and highest. Any thread. O(V).
Signal signal_of(std::span<const float> logits);

}  // namespace hearth::decode
