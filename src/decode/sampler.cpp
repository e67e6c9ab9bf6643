#include "decode/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "decode/philox.h"

namespace hearth::decode {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();
constexpr uint32_t kDrawStream = 0, kXtcStream = 1;

void in_range(const char* name, double value, bool inside, const char* range) {
  if (!inside || !std::isfinite(value)) fail(ErrorKind::invalid_argument, "{} is {}, expected {}", name, value, range);
}

std::span<const int32_t> window(std::span<const int32_t> history, int64_t context) {
  const size_t n = context == 0 ? history.size() : std::min(history.size(), static_cast<size_t>(context));
  return history.last(n);
}

constexpr size_t kLanes = 16;  // independent chains, which the compiler turns into vectors

// Highest value; NaN never wins, -inf when there is nothing else.
float highest(std::span<const float> values) {
  std::array<float, kLanes> top;
  top.fill(kOut);
  const size_t whole = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) top[j] = values[i + j] > top[j] ? values[i + j] : top[j];
  for (size_t i = whole; i < values.size(); ++i) top[0] = values[i] > top[0] ? values[i] : top[0];
  float best = kOut;
  for (const float z : top) best = z > best ? z : best;
  return best;
}

// e^x for x <= 0 to about 2 units in the last place, without a branch: 2^n * e^r, n = rint(x / ln 2), |r| <= ln(2) / 2,
// Taylor to r^7 (the rest is below 6e-9 of the sum). x below -87, or NaN, counts as -87.
inline float exp_below_zero(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer that stands in the low bits
  // As integers, which compare without a branch: the magnitude's bits rise with it, those of NaN lie above all.
  const int32_t magnitude = std::bit_cast<int32_t>(x) & 0x7fffffff, limit = std::bit_cast<int32_t>(87.0f);
  x = -std::bit_cast<float>(magnitude < limit ? magnitude : limit);
  const float shifted = x * 1.44269504f + kRound, n = shifted - kRound;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
}

// log(sum(exp(z - top))), for the one log-probability that greedy choice reports: fp32 terms, fp64 sums.
double log_sum_below(std::span<const float> z, float top) {
  constexpr size_t kBlock = 256;
  std::array<double, kLanes> sum{};
  std::array<float, kBlock> e;
  for (size_t i = 0; i < z.size(); i += kBlock) {
    const size_t n = std::min(kBlock, z.size() - i);
    if (n < kBlock) e.fill(0);
    for (size_t j = 0; j < n; ++j) e[j] = exp_below_zero(z[i + j] - top);
    for (size_t j = 0; j < kBlock; j += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane) sum[lane] += double{e[j + lane]};
  }
  double total = 0;
  for (const double s : sum) total += s;
  return std::log(total);
}

// Nothing can be drawn. Minus infinity alone comes from biases; NaN and infinity come out of the model.
[[noreturn]] void nothing_to_draw(std::span<const float> logits) {
  const auto broken = [](float z) { return std::isnan(z) || z == std::numeric_limits<float>::infinity(); };
  if (const auto bad = std::count_if(logits.begin(), logits.end(), broken); bad > 0)
    fail(ErrorKind::corrupt_file, "{} of {} logits are NaN or infinite, so no token can be drawn", bad, logits.size());
  fail(ErrorKind::invalid_argument, "no token can be drawn: the biases leave none");
}

}  // namespace

std::string_view name_of(HlgPivot pivot) {
  switch (pivot) {
    case HlgPivot::top: return "top";
    case HlgPivot::entropy: return "entropy";
    case HlgPivot::median: return "median";
  }
  return "unknown";
}

HlgPivot parse_hlg_pivot(std::string_view name) {
  for (const HlgPivot pivot : {HlgPivot::top, HlgPivot::entropy, HlgPivot::median})
    if (name == name_of(pivot)) return pivot;
  fail(ErrorKind::invalid_argument, "hlg-pivot is {}, expected top, entropy or median", name);
}

void validate(const SamplerOptions& o, int64_t V) {
  in_range("temperature", o.temperature, o.temperature >= 0 && o.temperature <= 100, "0 to 100");
  in_range("top-p", o.top_p, o.top_p > 0 && o.top_p <= 1, "more than 0, up to 1");
  in_range("top-k", static_cast<double>(o.top_k), o.top_k >= 0, "0 (off) or more");
  in_range("min-p", o.min_p, o.min_p >= 0 && o.min_p < 1, "0 up to, not including, 1");
  in_range("xtc-probability", o.xtc_probability, o.xtc_probability >= 0 && o.xtc_probability <= 1, "0 to 1");
  in_range("xtc-threshold", o.xtc_threshold, o.xtc_threshold >= 0 && o.xtc_threshold <= 1, "0 to 1");
  in_range("repetition-penalty", o.repetition_penalty,
           o.repetition_penalty == 0 || (o.repetition_penalty >= 0.01 && o.repetition_penalty <= 100),
           "0 (off) or 0.01 to 100");
  in_range("presence-penalty", o.presence_penalty, std::fabs(o.presence_penalty) <= 100, "-100 to 100");
  in_range("frequency-penalty", o.frequency_penalty, std::fabs(o.frequency_penalty) <= 100, "-100 to 100");
  in_range("repetition-context", static_cast<double>(o.repetition_context), o.repetition_context >= 0, "0 or more");
  in_range("presence-context", static_cast<double>(o.presence_context), o.presence_context >= 0, "0 or more");
  in_range("frequency-context", static_cast<double>(o.frequency_context), o.frequency_context >= 0, "0 or more");
  in_range("hlg-width", o.hlg_width, o.hlg_width >= 0, "0 or more");
  in_range("hlg-toe", o.hlg_toe, o.hlg_toe > 0, "more than 0");
  in_range("hlg-shoulder", o.hlg_shoulder, o.hlg_shoulder > 0, "more than 0");
  in_range("hlg-pivot-offset", o.hlg_pivot_offset, true, "a number");
  if (!o.curve.empty()) TransferCurve{o.curve};
  if (o.hlg && !o.curve.empty())
    fail(ErrorKind::invalid_argument, "hlg and curve are both given, expected one of them");
  for (const auto& [id, bias] : o.logit_bias) {
    if (id < 0 || id >= V) fail(ErrorKind::invalid_argument, "logit-bias names token {}, the vocabulary has {}", id, V);
    if (std::isnan(bias) || bias == -kOut)
      fail(ErrorKind::invalid_argument, "logit-bias of token {} is {}, expected a number or -inf", id, bias);
  }
}

bool log_softmax(std::span<float> logits) {
  const float top = highest(logits);
  if (!std::isfinite(top)) return false;
  double sum = 0;
  for (const float z : logits)
    if (!std::isnan(z)) sum += std::exp(double{z} - top);
  const double log_sum = top + std::log(sum);
  for (float& z : logits) z = std::isnan(z) ? kOut : static_cast<float>(z - log_sum);
  return true;
}

int32_t argmax(std::span<const float> values) {
  const float top = highest(values);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] == top) return static_cast<int32_t>(i);
  return 0;  // NaN alone
}

Sampler::Sampler(SamplerOptions options, int64_t V, std::vector<int32_t> exempt, int64_t top_logprobs)
    : options_(std::move(options)),
      exempt_(std::move(exempt)),
      counts_(static_cast<size_t>(V), 0),
      top_max_(static_cast<size_t>(std::clamp<int64_t>(top_logprobs, 0, V))) {
  validate(options_, V);
  top_.reserve(top_max_);
  order_.reserve(static_cast<size_t>(V));
  if (options_.repetition_penalty == 0) options_.repetition_penalty = 1;
  if (!options_.curve.empty()) curve_.emplace(options_.curve);
  if (options_.hlg || curve_) {
    options_.top_p = 1;
    options_.top_k = 0;
  }
}

void Sampler::penalize(std::span<float> z, std::span<const int32_t> history) {
  for (const auto& [id, bias] : options_.logit_bias) z[static_cast<size_t>(id)] += bias;
  // counts_ holds how often a token stands in the window; each first meeting applies the penalty.
  const auto each = [&](int64_t context, auto&& apply) {
    const auto tokens = window(history, context);
    for (const int32_t id : tokens) ++counts_[static_cast<size_t>(id)];
    for (const int32_t id : tokens)
      if (int32_t& count = counts_[static_cast<size_t>(id)]; count > 0) {
        apply(z[static_cast<size_t>(id)], static_cast<float>(count));
        count = 0;
      }
  };
  if (options_.repetition_penalty != 1) {
    const float c = static_cast<float>(options_.repetition_penalty);
    each(options_.repetition_context, [c](float& v, float) { v = v < 0 ? v * c : v / c; });
  }
  if (options_.presence_penalty != 0) {
    const float c = static_cast<float>(options_.presence_penalty);
    each(options_.presence_context, [c](float& v, float) { v -= c; });
  }
  if (options_.frequency_penalty != 0) {
    const float c = static_cast<float>(options_.frequency_penalty);
    each(options_.frequency_context, [c](float& v, float count) { v -= c * count; });
  }
}

// top_ = the highest values with their ids; a log-probability is (value - highest) - log_sum.
void Sampler::keep_top(std::span<const float> values, double highest, double log_sum) {
  top_.clear();
  if (top_max_ == 0) return;
  for (size_t i = 0; i < values.size(); ++i) {
    const float z = values[i];
    if (!(z > kOut)) continue;
    if (top_.size() == top_max_) {
      if (!(z > top_.back().second)) continue;
      top_.pop_back();
    }
    auto at = top_.end();
    while (at != top_.begin() && std::prev(at)->second < z) --at;
    top_.insert(at, {static_cast<int32_t>(i), z});
  }
  for (auto& [id, z] : top_) z = static_cast<float>((double{z} - highest) - log_sum);
}

// order_ = ids that are still in, the first n of them by falling probability (ties: lower id first).
void Sampler::order_down_to(std::span<const float> logprobs, size_t n) {
  order_.clear();
  for (size_t i = 0; i < logprobs.size(); ++i)
    if (logprobs[i] > kOut) order_.push_back(static_cast<int32_t>(i));
  const auto before = [&](int32_t a, int32_t b) {
    const float pa = logprobs[static_cast<size_t>(a)], pb = logprobs[static_cast<size_t>(b)];
    return pa != pb ? pa > pb : a < b;
  };
  n = std::min(n, order_.size());
  std::partial_sort(order_.begin(), order_.begin() + static_cast<int64_t>(n), order_.end(), before);
}

// The least number of ids, by falling probability, whose mass reaches that; order_ begins with them. All where rounding
// leaves the whole mass short of it.
size_t Sampler::order_to_mass(std::span<const float> l, double mass) {
  size_t kept = 0;
  double reached = 0;
  for (size_t n = 64;; n *= 8) {  // sorted piece by piece: most sets are small
    order_down_to(l, n);
    const size_t sorted = std::min(n, order_.size());
    while (kept < sorted && reached < mass) reached += std::exp(double{l[static_cast<size_t>(order_[kept++])]});
    if (reached >= mass || sorted == order_.size()) return kept;
  }
}

void Sampler::restrict(std::span<float> l, uint64_t step) {
  if (options_.top_p < 1) {
    const size_t kept = order_to_mass(l, options_.top_p);
    for (size_t i = kept; i < order_.size(); ++i) l[static_cast<size_t>(order_[i])] = kOut;
  }
  if (options_.min_p > 0) {
    const float top = l[static_cast<size_t>(argmax(l))];
    const double floor = top + std::log(options_.min_p);
    for (float& v : l)
      if (v < floor) v = kOut;
  }
  if (options_.xtc_probability > 0 && philox_uniform(options_.seed, step, 0, kXtcStream) < options_.xtc_probability) {
    const double threshold = std::log(options_.xtc_threshold);
    int32_t least = -1;
    for (size_t i = 0; i < l.size(); ++i)
      if (l[i] > threshold && (least < 0 || l[i] <= l[static_cast<size_t>(least)])) least = static_cast<int32_t>(i);
    for (size_t i = 0; i < l.size(); ++i)
      if (l[i] > threshold && static_cast<int32_t>(i) != least &&
          std::find(exempt_.begin(), exempt_.end(), static_cast<int32_t>(i)) == exempt_.end())
        l[i] = kOut;
  }
  if (options_.top_k > 0 && options_.top_k < static_cast<int64_t>(l.size())) {
    order_down_to(l, static_cast<size_t>(options_.top_k));
    for (size_t i = static_cast<size_t>(options_.top_k); i < order_.size(); ++i)
      l[static_cast<size_t>(order_[i])] = kOut;
  }
}

double Sampler::pivot(std::span<const float> l) {
  switch (options_.hlg_pivot) {
    case HlgPivot::top: break;
    case HlgPivot::entropy: {
      double mean = 0;
      for (const float v : l)
        if (v > kOut) mean += std::exp(double{v}) * double{v};
      return mean;
    }
    case HlgPivot::median: {
      const size_t reached = order_to_mass(l, 0.5);
      return double{l[static_cast<size_t>(order_[reached - 1])]};
    }
  }
  return double{l[static_cast<size_t>(argmax(l))]} - options_.hlg_pivot_offset;
}

// The curve of spec server 18 around the pivot mu.
double Sampler::hlg(double logprob, double mu) const {
  constexpr double kSteepest = 1e300;  // 1 / T of the least T is infinite
  const double m = options_.temperature > 0 ? std::min(1 / options_.temperature, kSteepest) : 1;
  const double w = options_.hlg_width;
  const double a = options_.hlg_toe, b = options_.hlg_shoulder, z = logprob - mu;
  if (z > w) return m * w + m * b * std::log(1 + (z - w) / b);
  if (z < -w) return -m * w - m * a * std::log(1 + (-z - w) / a);
  return m * z;
}

// argmax of score + Gumbel noise (Gumbel 1954): a draw from softmax(score) over the tokens that are still in.
template <class Score>
int32_t Sampler::draw(std::span<const float> logprobs, uint64_t step, const Score& score) const {
  int32_t best = -1;
  double top = 0;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    if (!(logprobs[i] > kOut)) continue;
    const double u = philox_uniform(options_.seed, step, static_cast<uint32_t>(i), kDrawStream);
    const double g = score(logprobs[i]) - std::log(-std::log(u));
    if (best < 0 || g > top) {
      best = static_cast<int32_t>(i);
      top = g;
    }
  }
  return best;
}

Sampled Sampler::sample(std::span<float> logits, std::span<const int32_t> history, uint64_t step) {
  penalize(logits, history);
  if (options_.greedy()) {
    const int32_t best = argmax(logits);
    const float z = logits[static_cast<size_t>(best)];
    if (!std::isfinite(z)) nothing_to_draw(logits);
    const double log_sum = log_sum_below(logits, z);
    keep_top(logits, double{z}, log_sum);
    return {best, static_cast<float>(-log_sum)};
  }
  if (!log_softmax(logits)) nothing_to_draw(logits);
  keep_top(logits, 0, 0);
  const double mu = options_.hlg ? pivot(logits) : 0;
  restrict(logits, step);
  int32_t id;
  if (options_.hlg) {
    id = draw(logits, step, [&](float l) { return hlg(l, mu); });
  } else if (curve_) {
    id = draw(logits, step, [&](float l) { return (*curve_)(l); });
  } else {
    // Measured from the highest, so that the least temperature overflows no finite score but far ones.
    const double highest = double{logits[static_cast<size_t>(argmax(logits))]};
    id = draw(logits, step, [&](float l) { return (l - highest) / options_.temperature; });
  }
  return {id, logits[static_cast<size_t>(id)]};
}

}  // namespace hearth::decode
