// Sums and searches over a row of logits: independent chains in fixed lanes, built for several instruction sets, which
// give the same bits. Any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace hearth::decode {

// Highest value; NaN never wins, -inf when there is nothing else.
float highest(std::span<const float> values);

// Its first index; 0 where NaN alone is there.
int32_t argmax(std::span<const float> values);

// log(sum(exp(z - top))) for z <= top: fp32 terms to 2 units in the last place, fp64 sums. NaN counts as e^-87, as all
// below -87 do.
double log_sum_below(std::span<const float> z, float top);

// z - log(sum(exp(z))) in place, by log_sum_below; NaN becomes -inf. Returns false, changing nothing, when no finite
// value is highest.
bool log_softmax(std::span<float> logits);

// Indices of the values above `cut`, ascending, into `ids` (room for all of them); returns how many.
size_t indices_above(std::span<const float> values, float cut, int32_t* ids);

// Values from `top` down in cells of 1 / scale each; what is below the last one belongs to it.
inline size_t cell_of(float value, float top, float scale, size_t cells) {
  const float cell = (top - value) * scale;
  return cell < static_cast<float>(cells) ? static_cast<size_t>(cell) : cells - 1;
}

// mass[cell] += exp(l) for the log-probabilities (<= 0) of these ids, in their order: fp32 terms, fp64 sums.
void mass_by_cell(std::span<const float> l, std::span<const int32_t> ids, float top, float scale,
                  std::span<double> mass);

// Which token a draw takes: argmax of score(l) + G over l > -inf, ties to the lower index, where
//   G = -log(-log(u)),  u = philox_uniform(seed, step, index, stream)   (Gumbel 1954, Gumbel-max)
// so a draw from softmax(score). The same as looking at all of them, but for what that costs: u has 32 bits, so that
// -3.2 < G < 22.9; values that cannot win so get no noise, and noise too small for the value no logarithm.
struct GumbelSearch {
  uint64_t seed = 0, step = 0;
  uint32_t stream = 0;
  // score: not falling. -1 where nothing is above -inf.
  int32_t run(std::span<const float> l, const std::function<double(float)>& score) const;
};

}  // namespace hearth::decode
