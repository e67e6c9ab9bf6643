// The loops of row_math.cpp, once for each instruction set: without contraction (a flag of the build) they agree to the
// bit, as the order of every sum is fixed by lanes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth::decode {

inline constexpr size_t kRowLanes = 16;   // independent chains, which become vectors
inline constexpr size_t kRowBlock = 256;  // values at a time

struct NoiseKey {
  uint32_t step[2], stream, seed[2];  // low words first
};
// What a draw needs of a block of values and their noise. words: the first word of philox for ids first, first + 1, ...
// By lane (id mod kRowLanes): the highest value and the highest word.
struct NoiseBlock {
  uint32_t words[kRowBlock];
  float value_max[kRowLanes];
  uint32_t word_max[kRowLanes];
};

struct RowKernels {
  // NaN never wins, -inf when there is nothing else.
  float (*highest)(const float* z, size_t n);
  // sum[i mod kRowLanes] += exp(z[i] - top); n a multiple of kRowBlock.
  void (*add_exps)(const float* z, size_t n, float top, double* sum);
  // z[i] - by, NaN to -inf.
  void (*subtract)(float* z, size_t n, double by);
  // l: kRowBlock values.
  void (*add_noise)(const float* l, uint32_t first, const NoiseKey& key, NoiseBlock& out);
};

// Those that this machine runs, the best one last.
std::vector<RowKernels> row_kernels();

}  // namespace hearth::decode
