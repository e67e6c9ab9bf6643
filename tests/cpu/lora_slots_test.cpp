// lora by slot: near its reference, the same bits on every instruction set, for any company and any order of rows; rows
// without an adapter keep the bits of the program without slots.
#include <gtest/gtest.h>

#include "cpu/model_programs.h"
#include "cpu/plan.h"
#include "cpu/program_runs.h"
#include "graph/passes.h"
#include "support/outcome.h"

namespace hearth::testing {
namespace {

using graph::Builder;
using graph::Program;
using graph::Value;

HostFactors random_factors(std::mt19937& random, const graph::AdapterModule& module, int64_t R, float size) {
  std::normal_distribution<float> normal(0, size);
  HostFactors f{.R = R, .scale = 0.5f, .a = {}, .b = {}};
  for (int64_t i = 0; i < module.K * R; ++i) f.a.push_back(normal(random));
  for (int64_t i = 0; i < R * module.N; ++i) f.b.push_back(normal(random));
  return f;
}

// Slots of ranks 1, 16, 40, which leave every fourth module alone.
std::vector<HostFactors> three_slots(const Program& p, float size) {
  std::mt19937 random(9);
  std::vector<HostFactors> all;
  for (const int64_t R : {1, 16, 40})
    for (size_t i = 0; i < p.adapter_modules.size(); ++i)
      all.push_back((i + static_cast<size_t>(R)) % 4 == 3 ? HostFactors{}
                                                          : random_factors(random, p.adapter_modules[i], R, size));
  return all;
}

constexpr graph::Limits kLimits{.rows_max = 80,
                                .sequences_max = 8,
                                .positions_max = 256,
                                .gathered_max = 80,
                                .numerics = graph::Numerics::deterministic,
                                .adapter_slots = 3,
                                .adapter_rank_max = 40};

// One module of odd extents, on 1 to 70 rows of four sequences.
TEST(LoraSlots, one_op_is_near_its_reference) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const auto& [K, N] : {std::pair<int64_t, int64_t>{100, 72}, {7, 1}, {33, 250}, {576, 1536}})
      for (const int64_t M : {1, 3, 67}) {
        Builder b(type);
        const Value x = b.embed(b.matrix("x", 64, K)), y = b.embed(b.matrix("y", 64, N));
        const Program p = b.finish({b.lora(y, x, "m")});
        const std::vector<PackedFormat> plain = {{.codec = Codec::f32}};
        const WeightSet weights = random_weight_set(p, plain, 3);
        std::mt19937 random(static_cast<uint32_t>(K + M));
        const std::vector<Piece> pieces = {{0, random_ids(random, M, 64), 0, graph::MaskKind::causal, 1},
                                           {1, random_ids(random, 3, 64), 0, graph::MaskKind::causal, -1},
                                           {2, random_ids(random, 1, 64), 0, graph::MaskKind::causal, 0},
                                           {3, random_ids(random, 5, 64), 0, graph::MaskKind::causal, 1}};
        const std::vector<HostFactors> slots = {random_factors(random, p.adapter_modules[0], 5, 0.3f),
                                                random_factors(random, p.adapter_modules[0], 40, 0.3f),
                                                {}};
        Session reference(graph::make_reference_executor(1), p, weights, kLimits, 4);
        reference.mount(slots);
        const Rows want = reference.step(pieces);
        Rows first;
        for (const cpu::Isa isa : cpu::available_isas())
          for (const int threads : {1, M == 67 ? 3 : 2}) {
            Session session(cpu_executor(isa, threads), p, weights, kLimits, 4);
            session.mount(slots);
            const Rows got = session.step(pieces);
            if (first.empty()) first = got;
            expect_same_bits(first[0], got[0], std::string(cpu::name_of(isa)));
            // Sums of K and of 40 products; |x A| is below 0.3 sqrt(K) 8, times 0.3 sqrt(40) 8 for the second.
            const double eps = type == DType::bf16 ? 0x1p-8 : 0x1p-24;
            const double sums = static_cast<double>(K + 40) * 0x1p-24 * 5 * std::sqrt(static_cast<double>(K)) * 15;
            for (size_t i = 0; i < want[0].size(); ++i)
              ASSERT_LE(std::abs(double{got[0][i]} - want[0][i]), 2 * eps * (std::abs(want[0][i]) + 50) + sums)
                  << K << " to " << N << ", " << M << " rows, " << cpu::name_of(isa) << ", value " << i;
          }
      }
}

struct Model {
  Program base, slots;
  WeightSet weights;
};
Model model(DType activation) {
  const std::vector<PackedFormat> formats = {{.codec = Codec::q4_1}, {.codec = Codec::q8_0}};
  const Program base = model_program({.bias = true, .activation = activation});
  return {base, graph::with_adapter_slots(base), random_weight_set(base, formats, 5)};
}

// Four sequences with the three adapters and none, prompts of 1 to 33 ids: whole, then two ids each.
std::vector<std::vector<Piece>> steps(const std::vector<int32_t>& adapters) {
  std::mt19937 random(4);
  std::vector<std::vector<Piece>> list(3);
  int64_t length[4] = {33, 5, 1, 20};
  for (int64_t s = 0; s < 4; ++s) {
    const int32_t slot = adapters[static_cast<size_t>(s)];
    list[0].push_back({s, random_ids(random, length[s], 300), 0, graph::MaskKind::causal, slot});
    for (size_t more : {1, 2})
      list[more].push_back({s, random_ids(random, 1, 300), length[s]++, graph::MaskKind::causal, slot});
  }
  return list;
}

TEST(LoraSlots, company_and_order_change_no_bit) {
  for (const auto& [type, threads] : {std::pair(DType::f32, 1), std::pair(DType::f32, 2), std::pair(DType::bf16, 2)}) {
    const cpu::Isa isa = cpu::available_isas().back();
    const Model m = model(type);
    const std::vector<HostFactors> factors = three_slots(m.slots, 0.1f);
    const auto session = [&] {
      Session s(cpu_executor(isa, threads), m.slots, m.weights, kLimits, 4);
      s.mount(factors);
      return s;
    };
    const auto run = steps({2, -1, 0, 1});
    Session together = session();
    std::vector<Rows> want;
    for (const auto& pieces : run) want.push_back(together.step(pieces));
    const auto V = static_cast<int64_t>(want[1][0].size()) / 4;

    Session turned = session();  // the same sequences, last one first
    for (size_t i = 0; i < run.size(); ++i) {
      const Rows got = turned.step({run[i].rbegin(), run[i].rend()});
      int64_t end = static_cast<int64_t>(got[0].size()), begin = 0;
      for (const Piece& piece : run[i]) {
        const int64_t n = V * static_cast<int64_t>(piece.ids.size());
        end -= n;
        ASSERT_TRUE(std::equal(got[0].begin() + end, got[0].begin() + end + n, want[i][0].begin() + begin));
        begin += n;
      }
    }
    Session alone = session(), plain(cpu_executor(isa, threads), m.base, m.weights, kLimits, 4);
    for (int64_t s = 0; s < 4; ++s) {
      for (size_t i = 0; i < run.size(); ++i) {
        int64_t begin = 0;
        for (int64_t before = 0; before < s; ++before)
          begin += V * static_cast<int64_t>(run[i][static_cast<size_t>(before)].ids.size());
        const Piece& piece = run[i][static_cast<size_t>(s)];
        const Rows got = alone.step({piece});
        const std::vector<float> part(want[i][0].begin() + begin,
                                      want[i][0].begin() + begin + static_cast<int64_t>(got[0].size()));
        expect_same_bits(got[0], part, fmt::format("sequence {}, step {}", s, i));
        const Rows base = plain.step({piece});
        if (piece.adapter < 0) expect_same_bits(base[0], part, "without an adapter");
        else EXPECT_NE(base[0], part);
      }
    }
  }
}

TEST(LoraSlots, every_instruction_set_and_the_row_by_row_run_agree) {
  const Model m = model(DType::f32);
  const std::vector<HostFactors> factors = three_slots(m.slots, 0.1f);
  const auto run = steps({2, 1, 0, 1});
  std::vector<Rows> want;
  for (const cpu::Isa isa : cpu::available_isas()) {
    Session s(cpu_executor(isa, 2), m.slots, m.weights, kLimits, 4);
    s.mount(factors);
    for (size_t i = 0; i < run.size(); ++i) {
      const Rows got = s.step(run[i]);
      if (want.size() <= i) want.push_back(got);
      expect_same_bits(want[i][0], got[0], std::string(cpu::name_of(isa)));
    }
  }
  Session s(cpu_executor(cpu::available_isas().back(), 2), m.slots, m.weights, kLimits, 4);
  s.mount(factors);
  const Piece& whole = run[0][0];
  const size_t V = want[1][0].size() / 4;
  for (size_t t = 0; t < whole.ids.size(); ++t) {
    const Rows got = s.step({{0, {whole.ids[t]}, static_cast<int64_t>(t), graph::MaskKind::causal, whole.adapter}});
    ASSERT_TRUE(std::equal(got[0].begin(), got[0].end(), want[0][0].begin() + static_cast<int64_t>(t * V))) << t;
  }
}

TEST(LoraSlots, a_slot_step_works_in_place_and_adds_no_barrier) {
  const Model m = model(DType::f32);
  const cpu::CpuPlan base(m.base, kLimits, 2), slots(m.slots, kLimits, 2);
  for (const auto& [a, b] : {std::pair(&base.few(), &slots.few()), std::pair(&base.many(), &slots.many())}) {
    const auto count = [](const cpu::StepList& list, auto&& what) { return std::ranges::count_if(list.steps, what); };
    const auto barrier = [](const cpu::Step& s) { return s.barrier; };
    const auto copies = [](const cpu::Step& s) { return s.kind == cpu::StepKind::copy; };
    EXPECT_EQ(count(*b, barrier), count(*a, barrier)) << to_string(slots, *b);
    EXPECT_LE(count(*b, copies), count(*a, copies)) << to_string(slots, *b);
  }
}

TEST(LoraSlots, what_does_not_fit_is_refused) {
  const Model m = model(DType::f32);
  const auto outcome_of = [&](const std::vector<HostFactors>& factors, int32_t slot) {
    Session s(cpu_executor(cpu::available_isas().front(), 1), m.slots, m.weights, kLimits, 4);
    s.mount(factors);
    return test::outcome([&] { s.step({{0, {1}, 0, graph::MaskKind::causal, slot}}); });
  };
  std::vector<HostFactors> factors = three_slots(m.slots, 0.1f);
  EXPECT_EQ(outcome_of(factors, 2), "accepted");
  EXPECT_EQ(outcome_of(factors, 3), "invalid_argument: run: adapter slot 3 of 3");
  std::mt19937 random(1);
  factors[0] = random_factors(random, m.slots.adapter_modules[0], 41, 0.1f);
  EXPECT_EQ(outcome_of(factors, 0), "invalid_argument: adapter of layers.0.q_proj: rank 41, the plan has room for 40");
  EXPECT_EQ(outcome_of(factors, -1), "accepted");
  factors.pop_back();
  EXPECT_EQ(outcome_of(factors, 1),
            "invalid_argument: run: 41 factors of adapters for 14 modules, the plan has room for 3 slots");
}

}  // namespace
}  // namespace hearth::testing
