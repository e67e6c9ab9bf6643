// Row-invariance (DESIGN 7), bit for bit: batch mates, chunk borders, pages, threads, plans.
#include <gtest/gtest.h>

#include "cpu/model_programs.h"
#include "cpu/program_runs.h"

namespace hearth::testing {
namespace {

using graph::Numerics;

constexpr int64_t kPrompt = 330;

struct World {
  graph::Program program;
  WeightSet weights;
  graph::Limits limits;
  std::vector<int32_t> prompt, other;

  World(const ModelShape& shape, Numerics numerics) : program(model_program(shape)) {
    weights = random_weight_set(program, all_formats(), 21);
    limits = {.rows_max = 700, .sequences_max = 3, .positions_max = 704, .gathered_max = 3, .numerics = numerics};
    std::mt19937 random(6);
    prompt = random_ids(random, kPrompt, static_cast<int32_t>(shape.V));
    other = random_ids(random, kPrompt, static_cast<int32_t>(shape.V));
  }

  std::vector<int32_t> part(int64_t begin, int64_t end) const { return {prompt.begin() + begin, prompt.begin() + end}; }

  // Logits of the last prompt row, prompt given in chunks.
  std::vector<float> chunked(int64_t chunk, int threads, uint32_t page_seed, bool mates) const {
    Session session(cpu_executor(cpu::available_isas().back(), threads), program, weights, limits, 3, page_seed);
    std::vector<float> logits;
    const auto V = static_cast<size_t>(program.value(program.results[0]).cols);
    for (int64_t at = 0; at < kPrompt; at += chunk) {
      const int64_t end = std::min(kPrompt, at + chunk);
      std::vector<Piece> pieces;
      size_t row = 0;
      if (mates && at % 3 != 2) {  // a neighbour before, one behind
        pieces.push_back({1, {other.begin() + at, other.begin() + end}, at});
        row = 1;
      }
      pieces.push_back({0, part(at, end), at});
      if (mates && at == 0) pieces.push_back({2, {other[3], other[4]}, 0});
      const Rows rows = session.step(pieces, false);
      logits.assign(rows[0].begin() + static_cast<int64_t>(row * V),
                    rows[0].begin() + static_cast<int64_t>((row + 1) * V));
    }
    return logits;
  }
};

void check(const ModelShape& shape, Numerics numerics, const std::string& name) {
  const World world(shape, numerics);
  const std::vector<float> want = world.chunked(kPrompt, 1, 0, false);
  for (const float x : want) ASSERT_TRUE(std::isfinite(x)) << name;
  for (const int64_t chunk : {int64_t{64}, int64_t{7}, int64_t{1}, int64_t{200}})
    expect_same_bits(want, world.chunked(chunk, 2, 5, false), name + ", chunks of " + std::to_string(chunk));
  expect_same_bits(want, world.chunked(kPrompt, 3, 9, true), name + ", 3 threads, neighbours");
  expect_same_bits(want, world.chunked(33, 2, 4, true), name + ", chunks of 33 with neighbours");
}

TEST(ExecutorInvariance, llama_deterministic) {
  check({.L = 1, .D = 128, .H = 6, .Hkv = 2, .F = 128}, Numerics::deterministic, "llama");
}
TEST(ExecutorInvariance, one_kv_head_and_windows) {
  check({.L = 2,
         .D = 128,
         .H = 4,
         .Hkv = 1,
         .Dh = 128,
         .F = 128,
         .window = 100,
         .cap = 50,
         .logit_cap = 30,
         .qk_norm = true,
         .sandwich = true,
         .act = graph::Activation::gelu_tanh},
        Numerics::deterministic, "gemma");
}
TEST(ExecutorInvariance, fast_and_parity) {
  check({.L = 1, .D = 128, .H = 3, .Hkv = 3, .F = 128, .bias = true}, Numerics::fast, "fast");
  ModelShape narrow{.L = 1, .D = 128, .H = 2, .Hkv = 1, .F = 128};
  narrow.activation = DType::bf16;
  check(narrow, Numerics::parity, "parity");
}
TEST(ExecutorInvariance, quantized_caches) {
  check({.L = 1, .D = 128, .H = 2, .Hkv = 2, .F = 128, .kv = graph::KvFormat::q8}, Numerics::deterministic, "q8");
  check({.L = 1, .D = 128, .H = 4, .Hkv = 2, .F = 128, .kv = graph::KvFormat::q4}, Numerics::deterministic, "q4");
}

// Long caches split decode by chunks among the members; the merge must give the bits of one thread.
TEST(ExecutorInvariance, decode_over_many_chunks) {
  const ModelShape shape{.L = 1, .D = 64, .H = 2, .Hkv = 1, .Dh = 64, .F = 64, .V = 64};
  const graph::Program program = model_program(shape);
  const WeightSet weights = random_weight_set(program, all_formats(), 3);
  const graph::Limits limits{.rows_max = 2100, .sequences_max = 1, .positions_max = 2112, .gathered_max = 1};
  std::mt19937 random(2);
  const std::vector<int32_t> ids = random_ids(random, 2050, 64);
  std::vector<float> want;
  for (const int threads : {1, 2, 3}) {
    Session session(cpu_executor(cpu::available_isas().back(), threads), program, weights, limits, 1);
    session.step({{0, {ids.begin(), ids.begin() + 2049}, 0}}, false);
    const Rows y = session.step({{0, {ids[2049]}, 2049}}, false);
    if (want.empty()) want = y[0];
    expect_same_bits(want, y[0], std::to_string(threads) + " threads");
  }
}

}  // namespace
}  // namespace hearth::testing
