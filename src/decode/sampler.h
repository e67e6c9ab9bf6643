// From logits to one token (spec models 39, 40). Order: logit bias, repetition, presence, frequency -> log-softmax (the
// reported log-probabilities) -> top-p, min-p, xtc, top-k -> divide by temperature -> draw. A constraint stands before
// all of it: what it forbids is -inf already, and -inf stays so; hence log-probabilities are those of what it allows.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/row_math.h"
#include "decode/transfer_curve.h"

namespace hearth::decode {

// The log-probability around which the hlg curve is straight: of the whole distribution, pivot_offset below the
// highest; its mean, which is minus the entropy; that of the token at which half the mass is reached, likeliest first.
enum class HlgPivot : uint8_t { top, entropy, median };
std::string_view name_of(HlgPivot pivot);
HlgPivot parse_hlg_pivot(std::string_view name);  // Error{invalid_argument} with the list

struct SamplerOptions {
  double temperature = 0;         // 0: argmax; ties take the lower id
  double top_p = 1;               // (0, 1]: smallest set whose mass reaches it, ties at the edge keep the lower id
  int64_t top_k = 0;              // 0: off
  double min_p = 0;               // [0, 1]: p_i >= min_p * p_max
  double xtc_probability = 0;     // [0, 1]
  double xtc_threshold = 0.1;     // [0, 1]: above it all but the least likely token are dropped
  double repetition_penalty = 1;  // z < 0 ? z c : z / c, once a distinct token; 1 and 0 are off
  double presence_penalty = 0;    // z - c
  double frequency_penalty = 0;   // z - c * count
  int64_t repetition_context = 20, presence_context = 20, frequency_context = 20;  // last tokens; 0: all
  std::vector<std::pair<int32_t, float>> logit_bias;
  // Either of two curves stands in place of top-p, top-k and temperature; min-p and xtc, which are off by default, go
  // before it.
  bool hlg = false;  // spec server 18; its slope is 1 / temperature, 1 at temperature 0
  double hlg_width = 4, hlg_toe = 4, hlg_shoulder = 6, hlg_pivot_offset = 6;
  HlgPivot hlg_pivot = HlgPivot::top;
  std::vector<CurvePoint> curve;  // spec server 19; empty: off
  uint64_t seed = 0;

  bool greedy() const { return temperature == 0 && !hlg && curve.empty(); }  // the seed does not matter
};

// Throws Error{invalid_argument} naming option, value and range.
void validate(const SamplerOptions& options, int64_t V);

struct Sampled {
  int32_t id = 0;
  float logprob = 0;  // natural log, before the sets and the temperature; 0 where none is wanted
};

// One sequence's sampler. Engine thread; allocates only in its constructor.
class Sampler {
 public:
  // exempt: end ids and newline ids, never dropped by xtc. top_logprobs: how many of the likeliest ids to report;
  // nullopt: nobody wants log-probabilities, and none are made where the draw does without them.
  Sampler(SamplerOptions options, int64_t V, std::vector<int32_t> exempt, std::optional<int64_t> top_logprobs = 0);

  // logits [V] are overwritten: with log-probabilities, -inf outside the sets; greedy (temperature 0) leaves them as
  // penalties and biases made them, and reports its log-probability from fp32 terms. history: prompt and answer so far.
  // step: index of the token to draw, counts the answer's tokens; the draw is a pure function of (seed, step, logits).
  // Throws Error{corrupt_file} where NaN and infinite logits leave nothing to draw, Error{invalid_argument} where
  // biases do.
  Sampled sample(std::span<float> logits, std::span<const int32_t> history, uint64_t step);

  // The likeliest ids of the last sample(), with their log-probabilities before the sets and the temperature: falling,
  // ties lower id first. As many as were asked for, fewer where fewer can be drawn.
  std::span<const std::pair<int32_t, float>> top() const { return top_; }

  const SamplerOptions& options() const { return options_; }

 private:
  void penalize(std::span<float> logits, std::span<const int32_t> history);
  void keep_top(std::span<const float> values, double base, double log_sum);
  std::span<int32_t> candidates(std::span<const float> logprobs, float nats);
  void keep_to(std::span<float> logprobs, int32_t last);
  int32_t edge_of_mass(std::span<const float> logprobs, double mass);
  void restrict(std::span<float> logprobs, uint64_t step);
  double hlg(double logprob, double mu) const;
  double pivot(std::span<const float> logprobs);

  SamplerOptions options_;
  std::optional<TransferCurve> curve_;
  std::vector<int32_t> exempt_;
  std::vector<int32_t> order_;   // room for ids
  std::vector<int32_t> counts_;  // [V], zero between calls
  std::vector<std::pair<int32_t, float>> top_;
  size_t top_max_ = 0;
  bool wants_logprob_;
};

}  // namespace hearth::decode
