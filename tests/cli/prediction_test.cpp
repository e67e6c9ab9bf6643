// What admission predicts is what a load then takes.
#include <gtest/gtest.h>

#include "cpu/executor.h"
#include "decode/memory.h"
#include "support/tiny_model.h"

namespace hearth::cli {
namespace {

using decode::Engine;
using decode::EngineOptions;
using graph::KvFormat;
using graph::Numerics;

std::unique_ptr<graph::Executor> executor_of(bool reference, int threads) {
  return reference ? graph::make_reference_executor(threads) : cpu::make_cpu_executor({.threads = threads});
}

TEST(Prediction, names_the_bytes_that_a_load_takes) {
  for (const test::TinyModel& m : {test::TinyModel{}, test::TinyModel{.tied = true, .type = DType::bf16},
                                   test::TinyModel{.L = 3, .V = 1000, .context = 4096, .window = 128}}) {
    const test::TempDir dir;
    test::write_tiny_model(m, dir);
    for (const bool reference : {false, true})
      for (const EngineOptions& options :
           {EngineOptions{.context = 64}, EngineOptions{.kv = KvFormat::q8, .context = 500, .prefill_chunk = 33},
            EngineOptions{.kv = KvFormat::f32, .context = 300, .sequences_max = 5, .gathered_max = 64},
            EngineOptions{.numerics = Numerics::parity, .context = 512, .prefill_chunk = 1}}) {
        for (const int threads : {1, 3}) {
          const std::shared_ptr<model::Model> model = model::Model::open(dir.path());
          const auto asked = executor_of(reference, threads);
          const decode::MemoryNeed need = decode::memory_need(*model, *asked, options, options.context);
          EXPECT_EQ(asked->weight_bytes(), 0);  // nothing is taken by asking
          Engine engine(model, executor_of(reference, threads), options);
          EXPECT_EQ(engine.executor().weight_bytes(), need.weights);
          EXPECT_EQ(engine.executor().working_bytes(), need.arena) << reference << " " << threads;
          EXPECT_EQ(engine.kv_bytes(), need.kv);
          EXPECT_EQ(engine.need().total(), need.total());
          EXPECT_GT(need.arena, 0);
        }
      }
  }
}

TEST(Prediction, fast_numerics_too) {
  const test::TempDir dir;
  const std::shared_ptr<model::Model> model = test::open_tiny_model({}, dir);
  const EngineOptions options{.numerics = Numerics::fast, .context = 128};
  Engine engine(model, executor_of(false, 2), options);
  EXPECT_EQ(engine.executor().working_bytes(), engine.need().arena);
}

}  // namespace
}  // namespace hearth::cli
