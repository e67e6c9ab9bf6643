#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/builder.h"
#include "graph/op_info.h"
#include "graph/passes.h"

namespace hearth::graph {
namespace {

constexpr FuseRules kAll{.multi_linear = true, .gate_up_act = true, .linear_add = true};

Program layer(DType activation) {
  Builder b(activation);
  b.segment("embed");
  const Value x = b.embed(b.matrix("table", 40, 64));
  b.segment("layers.0");
  const Value h = b.rms_norm(x, b.vector("norm", 64), 1e-6f);
  const Value q = b.linear(h, b.matrix("q", 96, 64), b.vector("q.bias", 96));
  const Value twice = b.scale(q, 2);  // between two linears of h
  const Value k = b.linear(h, b.matrix("k", 96, 64));
  const Value a = b.mul(twice, k);
  const Value y = b.add(x, b.linear(a, b.matrix("o", 64, 96)));
  const Value gate = b.linear(y, b.matrix("gate", 48, 64)), up = b.linear(y, b.matrix("up", 48, 64));
  const Value z = b.add(b.linear(b.gated_act(gate, up, Activation::silu), b.matrix("down", 64, 48)), y);
  b.segment("head");
  return b.finish({b.linear(z, b.matrix("table", 40, 64), {}, true), z});
}

std::vector<OpKind> kinds(const Program& p) {
  std::vector<OpKind> all;
  for (const Op& op : p.ops) all.push_back(op.kind);
  return all;
}

std::vector<std::vector<float>> run(const Program& program) {
  auto executor = make_reference_executor(1);
  std::mt19937 random(5);
  std::vector<WeightHandle> handles;
  for (const ValueId id : program.weights) {
    const ValueInfo& v = program.value(id);
    std::vector<float> data(static_cast<size_t>(v.rows_fixed * v.cols));
    for (float& x : data) x = std::normal_distribution<float>(0, 0.2f)(random);
    const PackedTensor w{.format = {},
                         .N = v.rows_fixed,
                         .K = v.cols,
                         .data = std::as_bytes(std::span(data)),
                         .scales = {},
                         .biases = {}};
    handles.push_back(
        executor->load(w, v.rows_fixed == 1 ? LayoutHint::vector : LayoutHint::matmul_and_gather, v.name));
  }
  const std::vector<int32_t> ids = {3, 7, 1}, begin = {0, 3}, len = {3}, out = {0, 1, 2};
  Bindings bindings{.weights = handles,
                    .batch = {.ids = ids,
                              .positions = out,
                              .row_begin = begin,
                              .kv_len = len,
                              .tables = {},
                              .adapter = {},
                              .out_rows = out,
                              .masks = {}}};
  std::vector<std::vector<float>> results;
  std::vector<std::span<float>> spans;
  for (const ValueId id : program.results) results.emplace_back(static_cast<size_t>(3 * program.value(id).cols));
  for (auto& r : results) spans.emplace_back(r);
  bindings.results = spans;
  const auto plan = executor->prepare(program, {.rows_max = 3});
  executor->run(*plan, bindings);
  return results;
}

TEST(Fuse, finds_each_fused_kind) {
  const Program fused = fuse(layer(DType::f32), kAll);
  using enum OpKind;
  EXPECT_EQ(kinds(fused), (std::vector<OpKind>{embed, rms_norm, multi_linear, scale, mul, linear_add, gate_up_act,
                                               linear_add, linear}));
  ASSERT_EQ(fused.segments.size(), 3u);
  EXPECT_EQ(fused.segments[0].end, 1);
  EXPECT_EQ(fused.segments[1].begin, 1);
  EXPECT_EQ(fused.segments[1].end, 8);
  EXPECT_EQ(fused.segments[2].end, 9);
}

TEST(Fuse, obeys_its_rules) {
  const Program plain = layer(DType::f32);
  EXPECT_EQ(kinds(fuse(plain, {})), kinds(plain));
  EXPECT_EQ(std::ranges::count(kinds(fuse(plain, {.linear_add = true})), OpKind::linear_add), 2);
  EXPECT_EQ(std::ranges::count(kinds(fuse(plain, {.gate_up_act = true})), OpKind::gate_up_act), 1);
}

TEST(Fuse, leaves_values_that_others_read) {
  Builder b(DType::f32);
  const Value x = b.embed(b.matrix("table", 40, 64));
  const Value l = b.linear(x, b.matrix("w", 64, 64));
  const Program p = b.finish({b.add(l, x), l});
  EXPECT_EQ(kinds(fuse(p, kAll)), kinds(p));
  // A tap on the gate keeps gate and up apart.
  Program taps = with_taps(layer(DType::f32), std::vector<std::string>{"gate"});
  EXPECT_EQ(std::ranges::count(kinds(fuse(taps, kAll)), OpKind::gate_up_act), 0);
}

TEST(Fuse, keeps_unrounded_linears_of_narrow_programs) {
  Builder b(DType::bf16);
  const Value x = b.embed(b.matrix("table", 40, 64));
  const Program p =
      b.finish({b.linear(x, b.matrix("w", 64, 64), {}, true), b.linear(x, b.matrix("v", 64, 64), {}, true)});
  EXPECT_EQ(kinds(fuse(p, kAll)), kinds(p));
}

TEST(Fuse, changes_no_result_and_expand_undoes_it) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Program plain = layer(type), fused = fuse(plain, kAll), expanded = expand(fused);
    const auto want = run(plain);
    EXPECT_EQ(run(fused), want);
    EXPECT_EQ(run(expanded), want);
    std::vector<OpKind> a = kinds(plain), b = kinds(expanded);
    std::ranges::sort(a);
    std::ranges::sort(b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(expanded.segments.back().end, static_cast<int32_t>(expanded.ops.size()));
  }
}

}  // namespace
}  // namespace hearth::graph
