// How far a model's predictions are from a source's: KL(p || r) per position (spec quantize-evals 26).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/engine.h"

namespace hearth::eval {

struct KlOptions {
  int64_t window = 256, windows_max = 64;
};

struct KlResult {
  double mean = 0, median = 0, p95 = 0, p99 = 0, max = 0;  // nats over the predicted positions
  double top1 = 0;                                         // share of positions with the same argmax
  double perplexity_a = 0, perplexity_b = 0;
  int64_t positions = 0, windows = 0;
  struct Worst {
    int64_t window = 0, position = 0;
    double kl = 0;
  };
  std::vector<Worst> worst;  // ten, falling
};

// sum_v p_v (log p_v - log r_v), log-softmax with max subtraction, fp64. Equal rows give exactly 0.
double kl_divergence(std::span<const float> p_logits, std::span<const float> r_logits);

// p = source, r = other, both teacher-forced on the same ids in windows. The vocabularies must be equal.
// Holds no more logits than the engines' own, and 8 bytes a position.
// Throws Error{invalid_argument} for different vocabularies, fewer ids than 2 or windows shorter than 2,
// Error{corrupt_file} for a model whose logits are no numbers.
KlResult kl(decode::Engine& source, decode::Engine& other, std::span<const int32_t> ids, const KlOptions& options,
            const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace hearth::eval
