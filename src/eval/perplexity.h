// Perplexity of a text under a model (spec quantize-evals 33).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/engine.h"
#include "text/tokenizer.h"

namespace hearth::eval {

enum class PerplexityMethod : uint8_t {
  mlx,    // documents in the order of permutation(seed 123), an end id behind each, rows of 512 without overlap
  llama,  // windows of 512 with BOS, the second half scored
};

struct PerplexityOptions {
  PerplexityMethod method = PerplexityMethod::mlx;
  int64_t row = 512, rows_max = 256;
  uint32_t seed = 123;
};

struct Perplexity {
  double value = 0;
  std::optional<double> standard_error;  // ppl * std / sqrt(N); absent with one row
  double mean_nats = 0, bits_per_byte = 0;
  int64_t tokens = 0, rows = 0;
};

// The ids of at least a row and, where the documents have them, rows_max rows, in the order of the method.
// Throws Error{invalid_argument} for fewer tokens than a row.
std::vector<int32_t> perplexity_ids(const text::Tokenizer& tokenizer, const std::vector<std::string>& documents,
                                    const PerplexityOptions& options);

// ids: of perplexity_ids() with the same options. Throws Error{corrupt_file} for logits that are no numbers.
// progress(done, rows).
Perplexity perplexity(decode::Engine& engine, const text::Tokenizer& tokenizer, std::span<const int32_t> ids,
                      const PerplexityOptions& options, const std::function<void(int64_t, int64_t)>& progress = {});

// log p(target) of a row of logits, fp64 sum.
double log_probability(std::span<const float> logits, int32_t target);

}  // namespace hearth::eval
