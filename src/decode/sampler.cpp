#include "decode/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/error.h"
#include "decode/philox.h"
#include "decode/row_math.h"

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
  in_range("min-p", o.min_p, o.min_p >= 0 && o.min_p <= 1, "0 to 1");
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

Sampler::Sampler(SamplerOptions options, int64_t V, std::vector<int32_t> exempt, std::optional<int64_t> top_logprobs)
    : options_(std::move(options)),
      exempt_(std::move(exempt)),
      counts_(static_cast<size_t>(V), 0),
      top_max_(static_cast<size_t>(std::clamp<int64_t>(top_logprobs.value_or(0), 0, V))),
      wants_logprob_(top_logprobs.has_value()) {
  validate(options_, V);
  top_.reserve(top_max_);
  order_.resize(static_cast<size_t>(V));
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

// top_ = the highest values with their ids; a log-probability is (value - base) - log_sum.
void Sampler::keep_top(std::span<const float> values, double base, double log_sum) {
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
  for (auto& [id, z] : top_) z = static_cast<float>((double{z} - base) - log_sum);
}

// By falling probability, ties: lower id first.
auto likelier(std::span<const float> logprobs) {
  return [logprobs](int32_t a, int32_t b) {
    const float pa = logprobs[static_cast<size_t>(a)], pb = logprobs[static_cast<size_t>(b)];
    return pa != pb ? pa > pb : a < b;
  };
}

constexpr float kNear = 16, kFar = std::numeric_limits<float>::infinity();  // most sets lie within

// The front of order_: ids that are in, and not more than `nats` less likely than the likeliest.
std::span<int32_t> Sampler::candidates(std::span<const float> logprobs, float nats) {
  return std::span(order_).first(indices_above(logprobs, highest(logprobs) - nats, order_.data()));
}

// The last id of the smallest set, by falling probability, whose mass reaches that; of all where rounding leaves the
// whole mass short of it. Cells of the same probability, nearly, are counted whole; one alone is sorted.
int32_t Sampler::edge_of_mass(std::span<const float> l, double mass) {
  constexpr size_t kCells = 1024;
  const float top = highest(l), scale = kCells / kNear;
  std::array<double, kCells> cells{};
  std::span<int32_t> ids = candidates(l, kNear);
  mass_by_cell(l, ids, top, scale, cells);
  double reached = 0;
  size_t cell = 0;
  while (cell < kCells && reached + cells[cell] < mass) reached += cells[cell++];
  if (cell < kCells) {
    const auto others = [&](int32_t id) { return cell_of(l[static_cast<size_t>(id)], top, scale, kCells) != cell; };
    ids = ids.first(ids.size() - std::ranges::remove_if(ids, others).size());
  } else {
    ids = candidates(l, kFar);
    reached = 0;
  }
  std::ranges::sort(ids, likelier(l));
  size_t kept = 0;
  while (kept < ids.size() && reached < mass) reached += std::exp(double{l[static_cast<size_t>(ids[kept++])]});
  return ids[kept - 1];
}

// What comes behind `last` in the order is out.
void Sampler::keep_to(std::span<float> l, int32_t last) {
  const float edge = l[static_cast<size_t>(last)];
  for (size_t i = 0; i < l.size(); ++i)
    if (!(l[i] > edge) && !(l[i] == edge && std::cmp_less_equal(i, last))) l[i] = kOut;
}

void Sampler::restrict(std::span<float> l, uint64_t step) {
  if (options_.top_p < 1) keep_to(l, edge_of_mass(l, options_.top_p));
  if (options_.min_p > 0) {
    const float top = highest(l);
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
    const auto k = static_cast<size_t>(options_.top_k);
    std::span<int32_t> ids = candidates(l, kNear);
    if (ids.size() < k) ids = candidates(l, kFar);
    if (ids.size() <= k) return;
    const auto last = ids.begin() + options_.top_k - 1;
    if (k <= 256) std::partial_sort(ids.begin(), last + 1, ids.end(), likelier(l));  // most fail the first comparison
    else std::nth_element(ids.begin(), last, ids.end(), likelier(l));
    keep_to(l, *last);
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
    case HlgPivot::median: return double{l[static_cast<size_t>(edge_of_mass(l, 0.5))]};
  }
  return double{highest(l)} - options_.hlg_pivot_offset;
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

Sampled Sampler::sample(std::span<float> logits, std::span<const int32_t> history, uint64_t step) {
  penalize(logits, history);
  if (options_.greedy()) {
    const int32_t best = argmax(logits);
    const float z = logits[static_cast<size_t>(best)];
    if (!std::isfinite(z)) nothing_to_draw(logits);
    if (!wants_logprob_) return {best, 0};
    const double log_sum = log_sum_below(logits, z);
    keep_top(logits, double{z}, log_sum);
    return {best, static_cast<float>(-log_sum)};
  }
  if (!log_softmax(logits)) nothing_to_draw(logits);
  keep_top(logits, 0, 0);
  const double mu = options_.hlg ? pivot(logits) : 0;
  restrict(logits, step);
  const GumbelSearch search{.seed = options_.seed, .step = step, .stream = kDrawStream};
  int32_t id;
  if (options_.hlg) {
    id = search.run(logits, [&](float l) { return hlg(l, mu); });
  } else if (curve_) {
    id = search.run(logits, [&](float l) { return (*curve_)(l); });
  } else {
    // Measured from the highest, so that the least temperature overflows no finite score but far ones.
    const double top = double{highest(logits)};
    id = search.run(logits, [&](float l) { return (l - top) / options_.temperature; });
  }
  return {id, wants_logprob_ ? logits[static_cast<size_t>(id)] : 0};
}

}  // namespace hearth::decode
