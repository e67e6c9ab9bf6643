#include "decode/signal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "decode/row_math.h"

namespace hearth::decode {
namespace {

size_t bin_of(double logprob) {
  const double at = (logprob - kSignalFloor) * (static_cast<double>(kSignalBins) / -kSignalFloor);
  return static_cast<size_t>(std::clamp(std::floor(at), 0.0, static_cast<double>(kSignalBins - 1)));
}

}  // namespace

Signal signal_of(std::span<const float> logits) {
  const double highest_logit = double{highest(logits)};
  if (!std::isfinite(highest_logit))
    fail(ErrorKind::corrupt_file, "none of {} logits is finite and highest, so there is no distribution",
         logits.size());
  double sum = 0;
  for (const float z : logits)
    if (!std::isnan(z)) sum += std::exp(double{z} - highest_logit);
  const double log_sum = std::log(sum);

  Signal signal;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double l =
        std::isnan(logits[i]) ? -std::numeric_limits<double>::infinity() : double{logits[i]} - highest_logit - log_sum;
    const double p = std::exp(l);
    const size_t bin = bin_of(l);
    ++signal.count[bin];
    signal.mass[bin] += p;
    if (p > 0) signal.entropy -= p * l;
    auto& top = signal.top;
    if (std::cmp_equal(top.size(), kSignalTop) && !(l > top.back().second)) continue;
    if (!std::isfinite(l)) continue;
    if (std::cmp_equal(top.size(), kSignalTop)) top.pop_back();
    const auto at = std::ranges::upper_bound(top, -l, {}, [](const auto& entry) { return -entry.second; });
    top.insert(at, {static_cast<int32_t>(i), l});
  }
  return signal;
}

}  // namespace hearth::decode
