#include "probe/streams.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "decode/scheduler.h"

namespace hearth::probe {
namespace {

using Clock = std::chrono::steady_clock;

double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

double quantile(std::vector<double> v, double share) {
  if (v.empty()) return 0;
  const auto at = v.begin() + static_cast<int64_t>(share * static_cast<double>(v.size() - 1));
  std::nth_element(v.begin(), at, v.end());
  return *at;
}

struct Run {
  double seconds = 0, sampling_share = 0;
  std::vector<double> first, between;
  std::optional<Error> error;
};

Run run_once(decode::Engine& engine, const StreamsOptions& o, Random& random) {
  Run run;
  decode::Scheduler scheduler(engine, {.waiting_max = o.streams, .prefix_bytes = 0});
  std::vector<Clock::time_point> last(static_cast<size_t>(o.streams));
  const Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < o.streams; ++i) {
    decode::Request request;
    for (int64_t n = 0; n < o.prompt_tokens; ++n)
      request.prompt.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(engine.spec().V))));
    request.max_tokens = o.tokens;
    request.sampler.temperature = o.temperature;
    request.sampler.seed = random.next();
    Clock::time_point& before = last[static_cast<size_t>(i)];
    scheduler.submit(std::move(request), {.token =
                                              [&run, &before, start](const decode::TokenEvent&) {
                                                const Clock::time_point now = Clock::now();
                                                if (before == Clock::time_point()) run.first.push_back(ms(now - start));
                                                else run.between.push_back(ms(now - before));
                                                before = now;
                                                return true;
                                              },
                                          .failed = [&run](const Error& error) { run.error = error; }});
  }
  while (scheduler.step()) {
  }
  if (run.error) throw *run.error;
  run.seconds = ms(Clock::now() - start) / 1000;
  const decode::Scheduler::Counts counts = scheduler.counts();
  run.sampling_share = counts.sampling_ms / (counts.sampling_ms + counts.evaluating_ms);
  return run;
}

}  // namespace

StreamsResult streams(decode::Engine& engine, const StreamsOptions& o,
                      const std::function<void(int64_t, int64_t)>& progress) {
  HEARTH_CHECK(engine.options().sequences_max >= o.streams, "{} streams on {} rows", o.streams,
               engine.options().sequences_max);
  Random random(1);
  std::vector<double> tps, first, worst, between, p99, sampling;
  for (int64_t i = 0; i <= o.runs; ++i) {
    const Run run = run_once(engine, o, random);
    if (progress) progress(i, o.runs);
    if (i == 0) continue;
    tps.push_back(static_cast<double>(o.streams * o.tokens) / run.seconds);
    first.push_back(quantile(run.first, 0.5));
    worst.push_back(quantile(run.first, 1));
    between.push_back(quantile(run.between, 0.5));
    p99.push_back(quantile(run.between, 0.99));
    sampling.push_back(run.sampling_share);
  }
  return {.tps = series(tps),
          .first_ms = series(first),
          .between_ms = series(between),
          .first_ms_worst = series(worst),
          .between_ms_p99 = series(p99),
          .sampling_share = series(sampling)};
}

}  // namespace hearth::probe
