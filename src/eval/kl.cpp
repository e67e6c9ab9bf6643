#include "eval/kl.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "decode/generate.h"
#include "decode/sampler.h"
#include "eval/perplexity.h"

namespace hearth::eval {

double kl_divergence(std::span<const float> p, std::span<const float> r) {
  const float p_top = *std::max_element(p.begin(), p.end()), r_top = *std::max_element(r.begin(), r.end());
  double p_sum = 0, r_sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    p_sum += std::exp(double{p[i]} - p_top);
    r_sum += std::exp(double{r[i]} - r_top);
  }
  const double p_log = p_top + std::log(p_sum), r_log = r_top + std::log(r_sum);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_log;
    const double probability = std::exp(log_p);
    if (probability > 0) kl += probability * (log_p - (r[i] - r_log));  // 0 log 0 is 0
  }
  return kl;
}

KlResult kl(decode::Engine& source, decode::Engine& other, std::span<const int32_t> ids, const KlOptions& options,
            const std::function<void(int64_t, int64_t)>& progress) {
  if (source.spec().V != other.spec().V)
    fail(ErrorKind::invalid_argument, "the vocabularies differ: {} has {}, {} has {}", source.spec().file,
         source.spec().V, other.spec().file, other.spec().V);
  if (ids.size() < 2) fail(ErrorKind::invalid_argument, "the text has {} tokens, KL needs at least 2", ids.size());
  if (options.window < 2 || options.windows_max < 1)
    fail(ErrorKind::invalid_argument, "{} windows of {} tokens: at least 1 window of 2 is needed", options.windows_max,
         options.window);
  const int64_t total = static_cast<int64_t>(ids.size());
  int64_t windows = std::min((total + options.window - 1) / options.window, options.windows_max);
  if (total - (windows - 1) * options.window < 2) --windows;  // one token alone predicts nothing
  const size_t V = static_cast<size_t>(source.spec().V);
  KlResult result;
  std::vector<double> values;
  std::vector<float> rows(static_cast<size_t>(options.window) * V);
  double nats_a = 0, nats_b = 0;
  int64_t same = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t n = std::min(options.window, total - w * options.window);
    const auto window = ids.subspan(static_cast<size_t>(w * options.window), static_cast<size_t>(n));
    decode::evaluate(source, window, [&](int64_t row, std::span<const float> logits) {
      std::copy(logits.begin(), logits.end(), rows.begin() + row * static_cast<int64_t>(V));
    });
    decode::evaluate(other, window, [&](int64_t row, std::span<const float> r) {
      if (row + 1 >= n) return;
      const std::span<const float> p(rows.data() + static_cast<size_t>(row) * V, V);
      const double value = kl_divergence(p, r);
      values.push_back(value);
      same += decode::argmax(p) == decode::argmax(r);
      nats_a -= log_probability(p, window[static_cast<size_t>(row + 1)]);
      nats_b -= log_probability(r, window[static_cast<size_t>(row + 1)]);
      result.worst.push_back({w, row, value});
    });
    if (progress) progress(w + 1, windows);
  }
  const size_t N = values.size();
  std::sort(result.worst.begin(), result.worst.end(), [](const auto& a, const auto& b) { return a.kl > b.kl; });
  result.worst.resize(std::min<size_t>(10, result.worst.size()));
  double sum = 0;
  for (const double v : values) sum += v;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[std::min(N - 1, static_cast<size_t>(share * static_cast<double>(N)))];
  };
  result.mean = sum / static_cast<double>(N);
  result.median = at(0.5);
  result.p95 = at(0.95);
  result.p99 = at(0.99);
  result.max = values.back();
  result.top1 = static_cast<double>(same) / static_cast<double>(N);
  result.perplexity_a = std::exp(nats_a / static_cast<double>(N));
  result.perplexity_b = std::exp(nats_b / static_cast<double>(N));
  result.positions = static_cast<int64_t>(N);
  result.windows = windows;
  return result;
}

}  // namespace hearth::eval
