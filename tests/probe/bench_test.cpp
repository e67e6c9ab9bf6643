#include "probe/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "decode/tiny_engine.h"

namespace hearth::probe {
namespace {

using decode::tiny_engine;

TEST(Series, median_and_tenths_of_the_runs) {
  const BenchSeries s = series({5, 1, 4, 2, 3, 10, 9, 8, 7, 6});
  EXPECT_EQ(s.tps[0], 5);  // by run
  EXPECT_EQ(s.median, 6);
  EXPECT_EQ(s.p10, 2);
  EXPECT_EQ(s.p90, 10);
  EXPECT_EQ(series({7}).p90, 7);
  EXPECT_EQ(series({}).median, 0);
}

TEST(Bench, counts_runs_and_bytes_and_gives_its_pages_back) {
  const auto engine = tiny_engine({}, {.context = 200, .prefill_chunk = 32});
  const int64_t pages = engine->cache().pages_free(0);
  int64_t calls = 0;
  const BenchResult r = bench(*engine, {.prompt_tokens = 40, .tokens = 3, .runs = 2, .depth = 10},
                              [&](int64_t, int64_t total) { calls += total == 2; });
  EXPECT_EQ(calls, 3);  // a warm-up in front
  EXPECT_EQ(r.prefill.tps.size(), 2u);
  EXPECT_EQ(r.decode.tps.size(), 2u);
  EXPECT_GT(r.prefill.median, 0);
  // All weights but the table, which is gathered: two layers of nine tensors, the last norm, the head; f32.
  const int64_t layer = 64 + 128 * 64 + 64 * 64 + 64 * 64 + 64 * 128 + 64 + 3 * 64 * 96;
  EXPECT_EQ(r.streamed_bytes, 4 * (2 * layer + 64 + 258 * 64));
  EXPECT_EQ(r.kv_bytes, 12 * 2 * 2 * 64 * 2);  // K and V of two layers, bf16; the tokens see 11, 12 and 13 positions
  EXPECT_GT(r.flops_token, 2 * 2 * (layer - 128));
  EXPECT_EQ(engine->cache().pages_free(0), pages);
  const BenchResult none = bench(*engine, {.prompt_tokens = 0, .tokens = 0, .runs = 1, .depth = 1});
  EXPECT_TRUE(none.prefill.tps.empty() && none.decode.tps.empty());
}

// With windows a step gives pages back that its own rows saw, so the next step at the same depth needs them anew.
TEST(StepTable, repeats_a_step_at_its_depth_behind_windows) {
  for (const int64_t depth : {0, 110, 150})
    for (const int64_t M : {1, 20}) {
      const auto engine = tiny_engine({.window = 48}, {.context = 256, .prefill_chunk = 32});
      const int64_t pages = engine->cache().pages_free(0);
      const StepTable t = step_table(*engine, M, depth, 3);
      int64_t ops = 0;
      for (const StepRow& row : t.rows) ops += row.count;
      EXPECT_EQ(ops, static_cast<int64_t>(engine->plan_for(M).program().ops.size()));
      EXPECT_TRUE(std::ranges::any_of(t.rows, [](const StepRow& row) { return row.op == "linear (head)"; }));
      EXPECT_TRUE(std::ranges::is_sorted(t.rows, std::greater{}, &StepRow::ms));
      for (const StepRow& row : t.rows) {
        const bool reads = row.op.starts_with("linear") || row.op == "embed";
        EXPECT_EQ(row.format, reads ? "f32" : "") << row.op;
      }
      EXPECT_EQ(engine->cache().pages_free(0), pages);
    }
}

}  // namespace
}  // namespace hearth::probe
