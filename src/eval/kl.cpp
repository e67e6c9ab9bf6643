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

namespace {

// The ten worst positions: a heap whose top is the mildest of them. Among equals the earlier one stays.
class Worst {
 public:
  void add(const KlResult::Worst& w) {
    if (heap_.size() == kMax && !worse(w, heap_.front())) return;
    if (heap_.size() == kMax) {
      std::pop_heap(heap_.begin(), heap_.end(), worse);
      heap_.pop_back();
    }
    heap_.push_back(w);
    std::push_heap(heap_.begin(), heap_.end(), worse);
  }
  std::vector<KlResult::Worst> falling() && {
    std::sort(heap_.begin(), heap_.end(), worse);
    return std::move(heap_);
  }

 private:
  static constexpr size_t kMax = 10;
  static bool worse(const KlResult::Worst& a, const KlResult::Worst& b) {
    if (a.kl != b.kl) return a.kl > b.kl;
    return a.window != b.window ? a.window < b.window : a.position < b.position;
  }
  std::vector<KlResult::Worst> heap_;
};

void require_numbers(const decode::Engine& engine, double nats) {
  if (!std::isfinite(nats))
    throw decode::no_numbers(engine, engine.adapter_name(decode::kDefaultAdapter), "a logit is NaN or infinite");
}

}  // namespace

KlResult kl(decode::Engine& source, decode::Engine& other, std::span<const int32_t> ids, const KlOptions& options,
            const std::function<void(int64_t, int64_t)>& progress) {
  if (source.spec().V != other.spec().V)
    fail(ErrorKind::invalid_argument, "the vocabularies differ: {} has {}, {} has {}", source.spec().file,
         source.spec().V, other.spec().file, other.spec().V);
  if (ids.size() < 2) fail(ErrorKind::invalid_argument, "the text has {} tokens, KL needs at least 2", ids.size());
  if (options.window < 2 || options.windows_max < 1)
    fail(ErrorKind::invalid_argument, "{} windows of {} tokens: at least 1 window of 2 is needed", options.windows_max,
         options.window);
  HEARTH_CHECK(&source != &other, "one engine's logits last until its next step: two are needed");
  const int64_t total = static_cast<int64_t>(ids.size());
  int64_t windows = std::min((total + options.window - 1) / options.window, options.windows_max);
  if (total - (windows - 1) * options.window < 2) --windows;  // one token alone predicts nothing
  const auto V = static_cast<size_t>(source.spec().V);
  KlResult result;
  std::vector<double> values;
  Worst worst;
  double nats_a = 0, nats_b = 0;
  int64_t same = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t n = std::min(options.window, total - w * options.window);
    const auto window = ids.subspan(static_cast<size_t>(w * options.window), static_cast<size_t>(n));
    // Both take the same few rows in turn, so that no window's logits are ever held.
    decode::Evaluation a(source, n), b(other, n);
    const int64_t chunk = std::min(a.rows_max(), b.rows_max());
    for (int64_t at = 0; at < n; at += chunk) {
      const auto rows = window.subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(chunk, n - at)));
      const std::span<const float> p_rows = a.next(rows), r_rows = b.next(rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t row = at + static_cast<int64_t>(i);
        if (row + 1 >= n) break;
        const std::span<const float> p = p_rows.subspan(i * V, V), r = r_rows.subspan(i * V, V);
        const int32_t target = window[static_cast<size_t>(row + 1)];
        const double nats_p = -log_probability(p, target), nats_r = -log_probability(r, target);
        require_numbers(source, nats_p);
        require_numbers(other, nats_r);
        const double value = kl_divergence(p, r);
        values.push_back(value);
        same += decode::argmax(p) == decode::argmax(r);
        nats_a += nats_p;
        nats_b += nats_r;
        worst.add({w, row, value});
      }
    }
    if (progress) progress(w + 1, windows);
  }
  const size_t N = values.size();
  result.worst = std::move(worst).falling();
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
