// with_adapters and with_taps.
#include <gtest/gtest.h>

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
