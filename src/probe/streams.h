// Speed of many answers at once.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "decode/engine.h"
#include "probe/bench.h"

namespace hearth::probe {

struct StreamsOptions {
  int64_t streams = 8, prompt_tokens = 90, tokens = 64, runs = 3;
  double temperature = 0;
};

// Of one run: every stream asks at once, each with a prompt of its own, and answers to the last token.
struct StreamsResult {
  BenchSeries tps;                   // tokens of all answers a second, from the first request to the last token
  BenchSeries first_ms, between_ms;  // of a run: medians over streams and over tokens
  BenchSeries first_ms_worst, between_ms_p99;
  BenchSeries sampling_share;  // of the time to logits and tokens: what the sampler takes
};

// One warm-up, then `runs` runs. As Engine::step throws. The engine offers at least `streams` rows and as many gathered
// ones.
StreamsResult streams(decode::Engine& engine, const StreamsOptions& options,
                      const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace hearth::probe
