#include "probe/streams.h"

#include <gtest/gtest.h>

#include "decode/tiny_engine.h"

namespace hearth::probe {
namespace {

using decode::tiny_engine;

TEST(Streams, measures_every_run_and_gives_its_pages_back) {
  const auto engine = tiny_engine({}, {.context = 64, .sequences_max = 3, .prefill_chunk = 16, .gathered_max = 3});
  const int64_t pages = engine->cache().pages_free(0);
  int64_t calls = 0;
  const StreamsResult r = streams(*engine, {.streams = 3, .prompt_tokens = 20, .tokens = 5, .runs = 2},
                                  [&](int64_t, int64_t total) { calls += total == 2; });
  EXPECT_EQ(calls, 3);  // a warm-up in front
  EXPECT_EQ(r.tps.tps.size(), 2u);
  EXPECT_GT(r.tps.median, 0);
  EXPECT_GT(r.first_ms.median, 0);
  EXPECT_GE(r.first_ms_worst.median, r.first_ms.median);
  EXPECT_GT(r.between_ms.median, 0);
  EXPECT_GE(r.between_ms_p99.median, r.between_ms.median);
  EXPECT_GT(r.sampling_share.median, 0);
  EXPECT_LT(r.sampling_share.median, 1);
  EXPECT_EQ(engine->cache().pages_free(0), pages);
}

TEST(Streams, one_token_has_nothing_between) {
  const auto engine = tiny_engine({}, {.context = 64});
  const StreamsResult r = streams(*engine, {.streams = 1, .prompt_tokens = 4, .tokens = 1, .runs = 1});
  EXPECT_GT(r.first_ms.median, 0);
  EXPECT_EQ(r.between_ms.median, 0);
}

}  // namespace
}  // namespace hearth::probe
