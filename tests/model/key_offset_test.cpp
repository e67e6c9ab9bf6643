// The steady part of a key's bias: which pairs, which values, which models. That logits stay is for the oracles to say.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/forward.h"

namespace hearth::model {
namespace {

ModelSpec biased() {
  ModelSpec s;
  s.L = 2, s.D = 8, s.H = 4, s.Hkv = 2, s.Dh = 8, s.F = 16, s.V = 10, s.context = 1000;
  s.qkv_bias = true;
  s.layers.resize(2);
  graph::RopeSpec rope;
  rope.rot = 6, rope.pair_stride = 3;
  rope.inv_freq = {1.0f, 0.0011f, 0.0009f};
  rope.attention_factor = 2;
  s.ropes = {rope};
  return s;
}

TEST(KeyOffset, takes_the_bias_out_of_pairs_that_turn_by_less_than_a_radian) {
  const ModelSpec s = biased();
  const std::vector<float> bias = {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8};
  const std::vector<float> want = {0, 0, -6, 0, 0, -12, -7, -8, 0, 0, 6, 0, 0, 12, 7, 8};
  EXPECT_EQ(key_offset(s, 1, bias), want);
}

TEST(KeyOffset, is_for_plain_rotations_without_caps) {
  EXPECT_TRUE(has_key_offset(biased(), 0));
  const auto without = [](auto&& change) {
    ModelSpec s = biased();
    change(s);
    return has_key_offset(s, 0);
  };
  EXPECT_FALSE(without([](ModelSpec& s) { s.qkv_bias = false; }));
  EXPECT_FALSE(without([](ModelSpec& s) { s.qk_norm = true; }));
  EXPECT_FALSE(without([](ModelSpec& s) { s.attention_cap = 50; }));
  EXPECT_FALSE(without([](ModelSpec& s) { s.layers[0].rope = -1; }));
  EXPECT_FALSE(without([](ModelSpec& s) { s.ropes[0].pair_stride = 0; }));
  EXPECT_FALSE(without([](ModelSpec& s) { s.ropes[0].pair_stride = 4; }));
  EXPECT_FALSE(without([](ModelSpec& s) { s.ropes[0].dynamic_base = 1e4; }));
}

TEST(KeyOffset, is_in_the_forward_only_where_it_is_asked_for) {
  const auto offsets = [](const ForwardOptions& options) {
    const graph::Program program = forward(biased(), options);
    return std::ranges::count_if(program.weights,
                                 [&](graph::ValueId id) { return program.value(id).name.ends_with(kKeyOffset); });
  };
  EXPECT_EQ(offsets({}), 0);
  EXPECT_EQ(offsets({.kv = {}, .centre_keys = true}), 2);
  // f32 loses nothing; affine caches hold what their formula gives for the keys themselves.
  EXPECT_EQ(offsets({.kv = {graph::KvFormat::f32, graph::KvFormat::bf16}, .centre_keys = true}), 1);
}

}  // namespace
}  // namespace hearth::model
