// with_adapters and with_taps.
#include <gtest/gtest.h>

#include "graph/lora_layout.h"
#include "graph/passes.h"
#include "graph/reference_run.h"
#include "support/outcome.h"

namespace hearth::graph {
namespace {

using Floats = std::vector<float>;

Program two_linears() {
  Builder b(DType::f32);
  b.segment("embed");
  const Value x = b.embed(b.matrix("x", 1, 2));
  b.segment("layers.0");
  const Value q = b.linear(x, b.matrix("q", 2, 2));
  b.segment("head");
  return b.finish({b.linear(q, b.matrix("o", 1, 2))});
}

const Weights kWeights = {{"x", {1, 2}}, {"q", {1, 0, 0, 1}}, {"o", {1, 1}}};

TEST(WithAdapters, adds_the_branch_of_each_named_module) {
  const std::vector<AdapterSite> sites = {{"q", 1, 2}};
  const Program p = with_adapters(two_linears(), sites);
  Weights w = kWeights;
  w["q.lora_a"] = {1, 1};   // [K, R]: x A = 3
  w["q.lora_b"] = {5, -7};  // [R, N]
  // q = (1, 2) + 2 * 3 * (5, -7) = (31, -40)
  EXPECT_EQ(run_reference(p, w, 1)[0], Floats{-9});
  ASSERT_EQ(p.segments.size(), 3u);
  EXPECT_EQ(p.segments[1].end - p.segments[1].begin, 2);
  EXPECT_EQ(p.segments[2].end, static_cast<int32_t>(p.ops.size()));
  EXPECT_EQ(p.ops[2].name, "q.lora");
}

TEST(WithAdapters, without_sites_nothing_changes) {
  EXPECT_EQ(to_string(with_adapters(two_linears(), {})), to_string(two_linears()));
}

TEST(WithAdapters, names_a_module_that_is_not_there) {
  const std::vector<AdapterSite> sites = {{"q", 1, 1}, {"layers.9.up", 1, 1}};
  EXPECT_EQ(test::outcome([&] { with_adapters(two_linears(), sites); }),
            "not_found: adapter: the model has no linear module layers.9.up");
}

TEST(WithAdapterSlots, puts_a_branch_behind_all_linears_but_the_head) {
  Builder b(DType::f32);
  const Value x = b.embed(b.matrix("x", 3, 2));
  const Value q = b.linear(x, b.matrix("q", 2, 2));
  const Value last = b.gather_rows(q);
  const Program p = with_adapter_slots(b.finish({b.linear(last, b.matrix("o", 1, 2))}));
  ASSERT_EQ(p.adapter_modules.size(), 1u);
  EXPECT_EQ(p.adapter_modules[0].name, "q");
  EXPECT_EQ(to_string(p),
            "%1[2] f32 = embed(x)  # x\n"
            "%7[2] f32 = linear(%1, q, -)  # q\n"
            "%3[2] f32 = lora(%7, %1)  # q.lora\n"
            "%4[2] f32 = gather_rows(%3)  # gather_rows2\n"
            "%6[1] f32 = linear(%4, o, -)  # o\n");

  // Three sequences of a row: slot 1, none, slot 0, which leaves q alone.
  const auto executor = make_reference_executor(1);
  const auto load = [&](const Floats& values, int64_t N, int64_t K) {
    return executor->load({{}, N, K, std::as_bytes(std::span(values)), {}, {}}, LayoutHint::vector, "factor");
  };
  Floats a(32), factor_b(32);  // R = 1: x A = x0 + x1
  a[static_cast<size_t>(lora_index_a(2, 0, 0))] = a[static_cast<size_t>(lora_index_a(2, 1, 0))] = 1;
  factor_b[static_cast<size_t>(lora_index_b(1, 0, 0))] = 5;
  factor_b[static_cast<size_t>(lora_index_b(1, 0, 1))] = -7;
  const std::vector<LoraFactors> factors = {{}, {.a = load(a, 2, 16), .b = load(factor_b, 1, 32), .R = 1, .scale = 2}};
  const Floats x_rows = {1, 2, 3, 4, 5, 6}, identity = {1, 0, 0, 1}, sum = {1, 1};
  std::vector<WeightHandle> handles;
  for (const Floats* w : {&x_rows, &identity, &sum}) {
    const auto N = static_cast<int64_t>(w->size()) / 2;
    handles.push_back(
        executor->load({{}, N, 2, std::as_bytes(std::span(*w)), {}, {}}, LayoutHint::matmul_and_gather, ""));
  }
  const std::vector<int32_t> rows = {0, 1, 2}, begin = {0, 1, 2, 3}, len = {1, 1, 1}, slots = {1, -1, 0};
  Floats y(3);
  const std::span<float> results[] = {y};
  const auto plan = executor->prepare(p, {.rows_max = 3, .sequences_max = 3});
  executor->run(*plan, {.weights = handles,
                        .batch = {.ids = rows,
                                  .positions = rows,
                                  .row_begin = begin,
                                  .kv_len = len,
                                  .tables = {},
                                  .adapter = slots,
                                  .out_rows = rows,
                                  .masks = {}},
                        .results = results,
                        .adapters = factors});
  EXPECT_EQ(y, (Floats{-9, 7, 11}));  // (1, 2) + 2 * 3 * (5, -7) = (31, -40)
}

TEST(Executor, unloaded_weights_give_their_bytes_back) {
  const auto executor = make_reference_executor(1);
  const Floats values(8);
  const PackedTensor w{{}, 2, 4, std::as_bytes(std::span(values)), {}, {}};
  const WeightHandle kept = executor->load(w, LayoutHint::vector, "kept");
  const int64_t bytes = executor->weight_bytes();
  const WeightHandle gone = executor->load(w, LayoutHint::vector, "gone");
  EXPECT_GT(executor->weight_bytes(), bytes);
  executor->unload(gone);
  EXPECT_EQ(executor->weight_bytes(), bytes);
  EXPECT_NE(executor->load(w, LayoutHint::vector, "next").id, kept.id);
}

TEST(WithTaps, gives_named_values_as_further_results) {
  const std::vector<std::string> names = {"q", "x"};
  const auto results = run_reference(with_taps(two_linears(), names), kWeights, 1);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0], Floats{3});
  EXPECT_EQ(results[1], (Floats{1, 2}));
  EXPECT_EQ(results[2], (Floats{1, 2}));
  const std::vector<std::string> unknown = {"layers.0.gone"};
  EXPECT_EQ(test::outcome([&] { with_taps(two_linears(), unknown); }),
            "not_found: tap: the program has no op named layers.0.gone");
}

TEST(Numerics, names_round_trip) {
  for (const Numerics n : {Numerics::parity, Numerics::deterministic, Numerics::fast})
    EXPECT_EQ(parse_numerics(name_of(n)), n);
  EXPECT_EQ(test::outcome([] { parse_numerics("exact"); }),
            "invalid_argument: numerics \"exact\" is unknown; choose parity, deterministic or fast");
}

}  // namespace
}  // namespace hearth::graph
