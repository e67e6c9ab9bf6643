// Each op's reference against cases worked by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/op_info.h"
#include "graph/reference_run.h"

namespace hearth::graph {
namespace {

using Floats = std::vector<float>;

void expect_near(const Floats& got, const Floats& want, float tolerance = 1e-6f) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "at " << i;
}

TEST(Embed, gathers_rows_and_rounds_to_the_activation_type) {
  Builder b(DType::bf16);
  const Program p = b.finish({b.embed(b.matrix("x", 3, 2))});
  // 1 + 2^-8 lies between two bf16 neighbours and goes to the even one; so does 1 + 3 * 2^-8, upwards.
  const Weights weights = {{"x", {1, 2, 1.00390625f, 1.01171875f, 5, 6}}};
  EXPECT_EQ(run_reference(p, weights, 3, {.ids = {2, 1, 2}})[0], (Floats{5, 6, 1, 1.015625f, 5, 6}));
}

TEST(Scale, rounds_its_constant_first) {
  const auto by = [](Builder& b, Value x) { return b.scale(x, 1.01f); };
  EXPECT_EQ(apply(DType::bf16, 1, {40}, by), Floats{40.25f});  // 40 * 1.0078125 = 40.3125; 40 * 1.01 would give 40.5
  EXPECT_EQ(apply(DType::f32, 1, {40}, by), Floats{40 * 1.01f});
}

TEST(Add, takes_a_value_a_vector_or_a_column) {
  EXPECT_EQ(apply(DType::f32, 2, {1, 2, 3, 4}, [](Builder& b, Value x) { return b.add(x, x); }), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(apply(DType::f32, 2, {1, 2, 3, 4}, [](Builder& b, Value x) { return b.add(x, b.vector("v", 2)); },
                  {{"v", {10, 20}}}),
            (Floats{11, 22, 13, 24}));
  const auto column = [](Builder& b, Value x) { return b.mul(x, b.slice_cols(x, 1, 2)); };
  EXPECT_EQ(apply(DType::f32, 2, {1, 2, 3, 4}, column), (Floats{2, 4, 12, 16}));
  // bf16: 256 + 1 has no bf16 of its own.
  EXPECT_EQ(apply(DType::bf16, 1, {256}, [](Builder& b, Value x) { return b.add(x, b.vector("v", 1)); }, {{"v", {1}}}),
            Floats{256});
}

TEST(Act, gives_the_definitions) {
  const auto at = [](Activation f, float x) {
    return apply(DType::f32, 1, {x}, [f](Builder& b, Value v) { return b.act(v, f); })[0];
  };
  EXPECT_FLOAT_EQ(at(Activation::silu, 1), 0.73105857863f);
  EXPECT_FLOAT_EQ(at(Activation::gelu, 1), 0.84134474607f);
  EXPECT_FLOAT_EQ(at(Activation::gelu_tanh, 1), 0.84119199061f);
  EXPECT_FLOAT_EQ(at(Activation::gelu_tanh, -1), -0.15880800939f);
  EXPECT_FLOAT_EQ(at(Activation::sigmoid, 1), 0.73105857863f);
  EXPECT_FLOAT_EQ(at(Activation::tanh, 1), 0.76159415596f);
  EXPECT_EQ(at(Activation::relu, -3), 0);
  EXPECT_EQ(at(Activation::relu, 3), 3);
  EXPECT_EQ(at(Activation::relu2, -3), 0);
  EXPECT_EQ(at(Activation::relu2, 3), 9);
  EXPECT_EQ(at(Activation::silu, -1000), 0);  // no overflow
}

TEST(GatedAct, rounds_twice) {
  const auto op = [](Builder& b, Value x) {
    return b.gated_act(b.slice_cols(x, 0, 1), b.slice_cols(x, 1, 2), Activation::silu);
  };
  EXPECT_FLOAT_EQ(apply(DType::f32, 2, {1, 3}, op)[0], 3 * 0.73105857863f);
  // silu(1) = 0.7310586 is 0.73046875 in bf16; times 3 is 2.19140625, which goes to 2.1875.
  EXPECT_EQ(apply(DType::bf16, 2, {1, 3}, op), Floats{2.1875f});
}

TEST(RmsNorm, over_all_columns_and_per_head) {
  const auto whole = [](Builder& b, Value x) { return b.rms_norm(x, {}, 0); };
  expect_near(apply(DType::f32, 2, {3, 4}, whole), {3 / std::sqrt(12.5f), 4 / std::sqrt(12.5f)});
  const auto heads = [](Builder& b, Value x) { return b.rms_norm(x, b.vector("w", 2), 0, 2); };
  expect_near(apply(DType::f32, 4, {3, 4, 0, 2}, heads, {{"w", {1, 10}}}),
              {3 / std::sqrt(12.5f), 40 / std::sqrt(12.5f), 0, 20 / std::sqrt(2.0f)}, 1e-5f);
  // eps keeps a row of zeros finite, and stands inside the root.
  const auto eps = [](Builder& b, Value x) { return b.rms_norm(x, {}, 3); };
  EXPECT_EQ(apply(DType::f32, 1, {0, 1}, eps), (Floats{0, 0.5f}));
}

TEST(RmsNorm, rounds_before_and_after_its_weight) {
  const auto op = [](Builder& b, Value x) { return b.rms_norm(x, b.vector("w", 2), 0); };
  const Floats y = apply(DType::bf16, 2, {3, 4}, op, {{"w", {1, 3}}});
  // 1.1313708 is 1.1328125 in bf16; times 3 is 3.3984375, a tie that goes to the even 3.40625.
  EXPECT_EQ(y[1], 3.40625f);
}

TEST(LayerNorm, centres_and_scales) {
  const auto op = [](Builder& b, Value x) { return b.layer_norm(x, b.vector("w", 2), b.vector("b", 2), 0); };
  EXPECT_EQ(apply(DType::f32, 2, {1, 3, 5, 5.5}, op, {{"w", {2, 4}}, {"b", {0.5, -1}}}), (Floats{-1.5, 3, -1.5, 3}));
  const auto no_bias = [](Builder& b, Value x) { return b.layer_norm(x, b.vector("w", 2), {}, 0); };
  EXPECT_EQ(apply(DType::f32, 2, {1, 3}, no_bias, {{"w", {2, 4}}}), (Floats{-2, 4}));
}

TEST(Linear, multiplies_then_adds_its_bias) {
  const Weights weights = {{"W", {1, 2, 3, 4, 5, 6}}, {"c", {10, 20, 30}}};
  const auto op = [](Builder& b, Value x) { return b.linear(x, b.matrix("W", 3, 2), b.vector("c", 3)); };
  EXPECT_EQ(apply(DType::f32, 2, {1, 1, 0, -1}, op, weights), (Floats{13, 27, 41, 8, 16, 24}));
}

TEST(Linear, rounds_the_sum_then_the_bias_unless_the_result_is_f32) {
  const Weights weights = {{"W", {256, 1}}, {"c", {1}}};
  const auto rounded = [](Builder& b, Value x) { return b.linear(x, b.matrix("W", 1, 2), b.vector("c", 1)); };
  EXPECT_EQ(apply(DType::bf16, 2, {1, 1}, rounded, weights), Floats{256});  // 257 -> 256, 256 + 1 -> 256
  const auto f32 = [](Builder& b, Value x) { return b.linear(x, b.matrix("W", 1, 2), b.vector("c", 1), true); };
  EXPECT_EQ(apply(DType::bf16, 2, {1, 1}, f32, weights), Floats{258});
}

TEST(Lora, adds_the_scaled_branch) {
  const auto op = [](Builder& b, Value x) {
    const Value y = b.linear(x, b.matrix("W", 1, 2));
    return b.lora(y, x, b.matrix("A", 2, 2), b.matrix("B", 2, 1), 0.5f);
  };
  // x A = (1*1 + 2*3, 1*2 + 2*4) = (7, 10); B = (1, -1): -3; y = 3 + 0.5 * -3.
  EXPECT_EQ(apply(DType::f32, 2, {1, 2}, op, {{"W", {1, 1}}, {"A", {1, 2, 3, 4}}, {"B", {1, -1}}}), Floats{1.5f});
}

RopeSpec spec_of(std::vector<float> inv_freq, int64_t stride) {
  RopeSpec s;
  s.rot = static_cast<int64_t>(2 * inv_freq.size());
  s.inv_freq = std::move(inv_freq);
  s.pair_stride = stride;
  return s;
}

TEST(Rope, turns_half_split_pairs_and_leaves_the_rest) {
  // Heads of 5: pairs (0, 2) and (1, 3) turn, column 4 stays; positions 0 and 1.
  const RopeSpec spec = spec_of({1, 0.5f}, 2);
  const auto op = [&](Builder& b, Value x) { return b.rope(x, b.rope_angles(spec), 1, 5); };
  const float c = std::cos(1.0f), s = std::sin(1.0f), c2 = std::cos(0.5f), s2 = std::sin(0.5f);
  expect_near(apply(DType::f32, 5, {1, 2, 3, 4, 9, 1, 2, 3, 4, 9}, op),
              {1, 2, 3, 4, 9, c - 3 * s, 2 * c2 - 4 * s2, s + 3 * c, 2 * s2 + 4 * c2, 9});
}

TEST(Rope, turns_interleaved_pairs_of_every_head) {
  const RopeSpec spec = spec_of({1}, 0);
  const auto op = [&](Builder& b, Value x) { return b.rope(x, b.rope_angles(spec), 2, 2); };
  const float c = std::cos(3.0f), s = std::sin(3.0f);
  expect_near(apply(DType::f32, 4, {1, 0, 0, 1}, op, {}, {.positions = {3}}), {c, s, -s, c});
}

TEST(RopeAngles, carry_the_attention_factor) {
  RopeSpec spec = spec_of({2}, 1);
  spec.attention_factor = 1.5f;
  const auto op = [&](Builder& b, Value) { return b.rope_angles(spec); };
  expect_near(apply(DType::f32, 1, {0}, op, {}, {.positions = {2}}), {1.5f * std::cos(4.0f), 1.5f * std::sin(4.0f)});
}

TEST(RopeAngles, stretch_the_base_when_the_rule_is_dynamic) {
  RopeSpec spec = spec_of({1, 0.01f}, 2);  // base 10,000, rot 4
  spec.dynamic_base = 10000;
  spec.dynamic_factor = 2;
  spec.dynamic_positions = 8;
  EXPECT_EQ(rope_inv_freq(spec, 7, 1), 0.01f);  // the eighth position: length S0
  // Length 16: base * (2 * 16 / 8 - 1)^(4 / 2) = 10,000 * 9, to the power -2 / 4.
  EXPECT_FLOAT_EQ(rope_inv_freq(spec, 15, 1), static_cast<float>(1 / std::sqrt(90000.0)));
  EXPECT_EQ(rope_inv_freq(spec, 15, 0), 1.0f);
}

TEST(Softcap, bends_towards_the_cap) {
  const auto op = [](Builder& b, Value x) { return b.softcap(x, 30); };
  expect_near(apply(DType::f32, 3, {0, 30, -1000}, op), {0, 22.8478247f, -30}, 1e-5f);
}

TEST(Shapes, slice_concat_gather) {
  const auto op = [](Builder& b, Value x) { return b.concat_cols(b.slice_cols(x, 2, 3), b.slice_cols(x, 0, 2)); };
  EXPECT_EQ(apply(DType::f32, 3, {1, 2, 3, 4, 5, 6}, op), (Floats{3, 1, 2, 6, 4, 5}));
  const auto gather = [](Builder& b, Value x) { return b.gather_rows(x); };
  EXPECT_EQ(apply(DType::f32, 1, {7, 8, 9}, gather, {}, {.out_rows = {0, 2}}), (Floats{7, 9}));
}

TEST(Pool, last_mean_and_first_row_of_every_sequence) {
  const auto pooled = [](Pooling how, bool normalize) {
    return apply(DType::f32, 2, {1, 2, 3, 6, 0, 5}, [=](Builder& b, Value x) { return b.pool(x, how, normalize); }, {},
                 {.row_begin = {0, 2, 3}});
  };
  EXPECT_EQ(pooled(Pooling::last, false), (Floats{3, 6, 0, 5}));
  EXPECT_EQ(pooled(Pooling::cls, false), (Floats{1, 2, 0, 5}));
  EXPECT_EQ(pooled(Pooling::mean, false), (Floats{2, 4, 0, 5}));
  expect_near(pooled(Pooling::mean, true), {1 / std::sqrt(5.0f), 2 / std::sqrt(5.0f), 0, 1});
}

}  // namespace
}  // namespace hearth::graph
