// Whole small programs against the reference executor, every numerics mode (sanitized: in turn) and instruction set.
#include <gtest/gtest.h>

#include "cpu/model_programs.h"
#include "cpu/program_runs.h"
#include "support/scale.h"

namespace hearth::testing {
namespace {

using graph::Numerics;

struct Case {
  const char* name;
  ModelShape shape;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"llama", {}});
  all.push_back({"smollm heads", {.D = 192, .H = 9, .Hkv = 3, .Dh = 64, .F = 320, .tied = false}});
  all.push_back({"qwen2", {.H = 14, .Hkv = 2, .Dh = 64, .bias = true}});
  all.push_back({"gemma",
                 {.H = 4,
                  .Hkv = 1,
                  .Dh = 256,
                  .window = 40,
                  .cap = 50,
                  .logit_cap = 30,
                  .qk_norm = true,
                  .sandwich = true,
                  .act = graph::Activation::gelu_tanh}});
  all.push_back({"odd head", {.H = 3, .Hkv = 3, .Dh = 40, .act = graph::Activation::gelu}});
  all.push_back({"q8 cache", {.kv = graph::KvFormat::q8}});
  all.push_back({"q4 cache", {.Dh = 128, .kv = graph::KvFormat::q4}});
  all.push_back({"f32 cache", {.kv = graph::KvFormat::f32}});
  return all;
}

// A linear in s16 is off by at most sqrt(K / 3) / 65024 of the size of y where weights do not conspire (cpu-probes 5);
// s8 in groups of 32 by sqrt(32 / 3) / 254; fp32 sums of K terms by K eps / 2. Every linear adds its share; softmax and
// norms pass it on, up to a factor for which 4 stands. A quantized cache turns a small difference into one level.
double bound(const ModelShape& s, Numerics numerics) {
  const double K = static_cast<double>(std::max({s.D, s.F, s.H * s.Dh})), linears = 7.0 * static_cast<double>(s.L) + 1;
  const double each = numerics == Numerics::fast            ? std::sqrt(32.0 / 3) / 254
                      : numerics == Numerics::deterministic ? std::sqrt(K / 3) / 65024
                      : s.activation == DType::bf16         ? 4 * 0x1p-9
                                                            : K * 0x1p-24;
  // Differences before the cache flip roundings in it. In a quantized one that of a group's scale or bias (bf16) moves
  // 64 values at once, by 2^-9 of a range of about five deviations; single bf16 values only move themselves, few of
  // them.
  const bool quantized = s.kv == graph::KvFormat::q8 || s.kv == graph::KvFormat::q4;
  const double level = s.kv == graph::KvFormat::q4 ? 1.0 / 15 : 1.0 / 255;
  const double cache = s.kv == graph::KvFormat::f32 ? 0 : quantized ? 5 * 0x1p-9 + level / 4 : 0x1p-9 / 20;
  return 4 * (linears * each + static_cast<double>(s.L) * cache);
}

void compare(const Case& c, Numerics numerics, cpu::Isa isa, int threads) {
  const graph::Program program = model_program(c.shape);
  const WeightSet weights = random_weight_set(program, all_formats(), 7);
  const graph::Limits limits{
      .rows_max = 80, .sequences_max = 3, .positions_max = 512, .gathered_max = 80, .numerics = numerics};
  Session reference(graph::make_reference_executor(1), program, weights, limits, 3, 5);
  Session cpu(cpu_executor(isa, threads), program, weights, limits, 3, 9);
  std::mt19937 random(3);
  const auto V = static_cast<int32_t>(c.shape.V);
  const std::vector<std::vector<Piece>> steps = {
      {{0, random_ids(random, 70, V), 0}},
      {{1, random_ids(random, 5, V), 0}, {0, random_ids(random, 1, V), 70}, {2, random_ids(random, 66, V), 0}},
      {{0, random_ids(random, 1, V), 71}},
      {{2, random_ids(random, 1, V), 66}, {1, random_ids(random, 1, V), 5}},
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const Rows want = reference.step(steps[i]), y = cpu.step(steps[i]);
    for (size_t r = 0; r < want.size(); ++r)
      EXPECT_LE(relative_error(y[r], want[r]), bound(c.shape, numerics))
          << c.name << ", " << graph::name_of(numerics) << ", " << cpu::name_of(isa) << ", " << threads
          << " threads, step " << i << ", result " << r;
  }
}

TEST(ExecutorPrograms, agree_with_the_reference) {
  const Numerics modes[] = {Numerics::parity, Numerics::deterministic, Numerics::fast};
  const bool all = test::scale() == 1;  // else each case in one mode, in turn
  size_t turn = 0;
  for (const Case& c : cases()) {
    for (size_t i = 0; i < std::size(modes); ++i)
      if (all || i == turn % std::size(modes)) compare(c, modes[i], cpu::available_isas().back(), 2);
    ++turn;
  }
}

TEST(ExecutorPrograms, parity_rounds_to_the_activation_type) {
  for (const DType type : {DType::bf16, DType::f16}) {
    Case c{"llama, narrow", {}};
    c.shape.activation = type;
    compare(c, Numerics::parity, cpu::available_isas().back(), 2);
  }
}

TEST(ExecutorPrograms, every_instruction_set_gives_the_same_bits) {
  for (const Case& c : cases())
    for (const Numerics numerics : {Numerics::parity, Numerics::deterministic, Numerics::fast}) {
      const graph::Program program = model_program(c.shape);
      const WeightSet weights = random_weight_set(program, all_formats(), 11);
      const graph::Limits limits{
          .rows_max = 24, .sequences_max = 2, .positions_max = 128, .gathered_max = 24, .numerics = numerics};
      std::mt19937 random(4);
      const auto V = static_cast<int32_t>(c.shape.V);
      const std::vector<Piece> prompt = {{0, random_ids(random, 17, V), 0}, {1, random_ids(random, 3, V), 0}};
      const std::vector<Piece> token = {{0, random_ids(random, 1, V), 17}};
      Rows first, second;
      for (const cpu::Isa isa : cpu::available_isas()) {
        Session session(cpu_executor(isa, 2), program, weights, limits, 2);
        const Rows a = session.step(prompt), b = session.step(token);
        if (first.empty()) {
          first = a;
          second = b;
        }
        const std::string what = std::string(c.name) + ", " + std::string(cpu::name_of(isa));
        for (size_t r = 0; r < a.size(); ++r) {
          expect_same_bits(first[r], a[r], what + ", prompt");
          expect_same_bits(second[r], b[r], what + ", token");
        }
      }
    }
}

TEST(ExecutorPrograms, encoder_with_full_masks) {
  ModelShape shape{.encoder = true};
  const graph::Program program = model_program(shape);
  const WeightSet weights = random_weight_set(program, all_formats(), 2);
  const graph::Limits limits{
      .rows_max = 400, .sequences_max = 3, .positions_max = 0, .gathered_max = 400, .numerics = Numerics::parity};
  std::mt19937 random(8);
  const std::vector<Piece> pieces = {{0, random_ids(random, 300, 300), 0, graph::MaskKind::full},
                                     {1, random_ids(random, 1, 300), 0, graph::MaskKind::full},
                                     {2, random_ids(random, 65, 300), 0, graph::MaskKind::causal}};
  Session reference(graph::make_reference_executor(1), program, weights, limits, 3);
  Session cpu(cpu_executor(cpu::available_isas().back(), 3), program, weights, limits, 3);
  EXPECT_LE(relative_error(cpu.step(pieces)[0], reference.step(pieces)[0]), bound(shape, Numerics::parity));
}

TEST(ExecutorPrograms, timing_lists_every_op_and_changes_nothing) {
  const graph::Program program = model_program({});
  const WeightSet weights = random_weight_set(program, all_formats(), 1);
  const graph::Limits limits{.rows_max = 8, .sequences_max = 1, .positions_max = 64, .gathered_max = 8};
  Session session(cpu_executor(cpu::available_isas().back(), 2), program, weights, limits, 1);
  std::mt19937 random(1);
  const std::vector<Piece> pieces = {{0, random_ids(random, 8, 300), 0}};
  const Rows plain = session.step(pieces);
  EXPECT_TRUE(session.executor().timing().empty());
  session.executor().set_timing(true);
  expect_same_bits(plain[0], session.step(pieces)[0], "timed");
  ASSERT_EQ(session.executor().timing().size(), session.plan().program().ops.size());
  double total = 0;
  for (const graph::OpTime& t : session.executor().timing()) total += t.seconds;
  EXPECT_GT(total, 0);
}

}  // namespace
}  // namespace hearth::testing
