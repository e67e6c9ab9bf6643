// Speed of a model: prefill and decode, several runs, greedy, random prompt ids.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "decode/engine.h"

namespace hearth::probe {

struct BenchOptions {
  int64_t prompt_tokens = 512, tokens = 64, runs = 5, depth = 0;  // depth: cached positions in front of the answer
};

struct BenchSeries {
  std::vector<double> tps;  // by run
  double median = 0, p10 = 0, p90 = 0;
};
BenchSeries series(std::vector<double> tps);

struct BenchResult {
  BenchSeries prefill, decode;
  int64_t streamed_bytes = 0;  // a decoded token reads this many bytes of weights, by the cost rules
  int64_t kv_bytes = 0;        // and of the KV cache, on average over the answer
  int64_t flops_token = 0;     // of a prompt token
};

// One warm-up, then `runs` runs. progress(done, total).
BenchResult bench(decode::Engine& engine, const BenchOptions& options,
                  const std::function<void(int64_t, int64_t)>& progress = {});

// Ops of a step by kind and by the formats of their matrices, the head apart, slowest first.
struct StepRow {
  std::string op;
  std::string format;  // of the matrices as the file holds them, "q4_k", "q4_k+q6_k" for one op of both; empty: none
  int64_t count = 0;
  double ms = 0;      // per step, median over steps
  int64_t bytes = 0;  // weights and activations of one step
  int64_t flops = 0;
};
struct StepTable {
  std::vector<StepRow> rows;
  double step_ms = 0;  // median of whole steps with timing off
};
// A decode step (M = 1) behind `depth` positions, or a prefill step of M rows.
StepTable step_table(decode::Engine& engine, int64_t M, int64_t depth, int64_t steps);

}  // namespace hearth::probe
