// Type rules, names, error texts, and the printed form of a program.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/op_info.h"
#include "support/outcome.h"

namespace hearth::graph {
namespace {

using test::outcome;

struct Start {
  Builder b{DType::bf16};
  Value x = b.embed(b.matrix("x", 7, 8));  // [M, 8]
};

// What a method says about x [M, 8].
template <class Call>
std::string says(const Call& call) {
  Start s;
  return outcome([&] { call(s.b, s.x); });
}

TEST(Builder, results_have_the_types_of_their_rules) {
  Start s;
  const auto type = [&](Value v) {
    const ValueInfo& i = s.b.program().value(v.id);
    return std::tuple(i.rows, i.cols, i.dtype);
  };
  EXPECT_EQ(type(s.x), std::tuple(Rows::packed, 8, DType::bf16));
  EXPECT_EQ(type(s.b.linear(s.x, s.b.matrix("w", 3, 8))), std::tuple(Rows::packed, 3, DType::bf16));
  EXPECT_EQ(type(s.b.linear(s.x, s.b.matrix("w", 3, 8), {}, true)), std::tuple(Rows::packed, 3, DType::f32));
  EXPECT_EQ(type(s.b.gather_rows(s.x)), std::tuple(Rows::gathered, 8, DType::bf16));
  EXPECT_EQ(type(s.b.pool(s.x, Pooling::last, true)), std::tuple(Rows::sequences, 8, DType::f32));
  EXPECT_EQ(type(s.b.slice_cols(s.x, 2, 5)), std::tuple(Rows::packed, 3, DType::bf16));
  EXPECT_EQ(type(s.b.concat_cols(s.x, s.x)), std::tuple(Rows::packed, 16, DType::bf16));
  RopeSpec spec{.inv_freq = {1}, .rot = 2, .pair_stride = 1};
  EXPECT_EQ(type(s.b.rope_angles(spec)), std::tuple(Rows::packed, 2, DType::f32));
}

TEST(Builder, refuses_shapes_that_do_not_fit_naming_op_and_numbers) {
  EXPECT_EQ(says([](Builder& b, Value x) { b.linear(x, b.matrix("layers.3.q", 16, 32)); }),
            "corrupt_file: linear layers.3.q: weight is [16, 32] but x has K = 8");
  EXPECT_EQ(says([](Builder& b, Value x) { b.linear(x, b.matrix("q", 16, 8), b.vector("q.bias", 4)); }),
            "corrupt_file: linear q: weight is [16, 8] but the bias has 4 values");
  EXPECT_EQ(says([](Builder& b, Value x) { b.linear(x, x); }), "corrupt_file: linear x: the weight is no matrix");
  EXPECT_EQ(says([](Builder& b, Value x) { b.embed(x); }), "corrupt_file: embed x: the table is no weight matrix");
  EXPECT_EQ(says([](Builder& b, Value x) { b.rms_norm(x, {}, 0, 3); }),
            "corrupt_file: rms_norm rms_norm1: x has D = 8, which is no multiple of the width 3");
  EXPECT_EQ(says([](Builder& b, Value x) { b.rms_norm(x, b.vector("n", 4), 0); }),
            "corrupt_file: rms_norm n: x is normed over 8 columns, the weight has 4");
  EXPECT_EQ(says([](Builder& b, Value x) { b.layer_norm(x, b.vector("n", 4), {}, 0); }),
            "corrupt_file: layer_norm n: x has D = 8, the weight has 4");
  EXPECT_EQ(says([](Builder& b, Value x) { b.layer_norm(x, b.vector("n", 8), b.vector("c", 5), 0); }),
            "corrupt_file: layer_norm n: x has D = 8, the bias has 5");
  EXPECT_EQ(says([](Builder& b, Value x) { b.add(x, b.slice_cols(x, 0, 4)); }),
            "corrupt_file: add add2: x has 8 columns, the other operand has 4");
  EXPECT_EQ(says([](Builder& b, Value x) { b.add(x, b.matrix("w", 3, 8)); }),
            "corrupt_file: add add1: x has 8 columns, the other operand is a matrix of 3 rows");
  EXPECT_EQ(says([](Builder& b, Value x) { b.gated_act(x, b.slice_cols(x, 0, 4), Activation::silu); }),
            "corrupt_file: gated_act gated_act2: gate has 8 columns, up has 4");
  EXPECT_EQ(says([](Builder& b, Value x) { b.softcap(x, 0); }),
            "corrupt_file: softcap softcap1: cap is 0, it must be positive");
  EXPECT_EQ(says([](Builder& b, Value x) { b.slice_cols(x, 4, 9); }),
            "corrupt_file: slice_cols slice_cols1: columns 4 to 9 of 8");
  EXPECT_EQ(says([](Builder& b, Value x) { b.slice_cols(x, 4, 4); }),
            "corrupt_file: slice_cols slice_cols1: columns 4 to 4 of 8");
  EXPECT_EQ(says([](Builder& b, Value x) { b.gather_rows(b.gather_rows(x)); }),
            "corrupt_file: gather_rows gather_rows2: rows were gathered before");
  EXPECT_EQ(says([](Builder& b, Value x) { b.concat_cols(x, b.gather_rows(x)); }),
            "corrupt_file: concat_cols concat_cols2: the operands have different rows");
  EXPECT_EQ(says([](Builder& b, Value x) { b.lora(x, x, b.matrix("A", 8, 2), b.matrix("B", 3, 8), 1); }),
            "corrupt_file: lora A: A is [8, 2], B is [3, 8] for x of 8 and y of 8 columns");
}

TEST(Builder, refuses_heads_that_do_not_fit) {
  const RopeSpec spec{.inv_freq = {1, 1}, .rot = 4, .pair_stride = 2};
  EXPECT_EQ(says([&](Builder& b, Value x) { b.rope(x, b.rope_angles(spec), 3, 4); }),
            "corrupt_file: rope rope2: x has 8 columns, 3 heads of 4 are 12");
  EXPECT_EQ(says([&](Builder& b, Value x) { b.rope(x, b.rope_angles(spec), 4, 2); }),
            "corrupt_file: rope rope2: 4 columns turn in heads of 2");
  AttendSpec attend{.H = 4, .Hkv = 3, .Dh = 2, .scale = 1, .cap = 0, .window = 0, .format = {}, .donor = {}};
  EXPECT_EQ(says([&](Builder& b, Value x) { b.attend_plain(x, x, x, attend); }),
            "corrupt_file: attention attention1: 4 query heads do not share 3 KV heads evenly");
  attend.Hkv = 2;
  EXPECT_EQ(says([&](Builder& b, Value x) { b.attend(x, x, x, attend); }),
            "corrupt_file: kv_append kv_append1: operand 0 has 8 columns, 2 heads of 2 are 4");
  attend = {.H = 1, .Hkv = 1, .Dh = 8, .scale = 1, .cap = 0, .window = 0, .format = KvFormat::q8, .donor = {}};
  EXPECT_EQ(says([&](Builder& b, Value x) { b.attend(x, x, x, attend); }),
            "corrupt_file: kv_append kv_append1: a quantized KV cache needs heads of a multiple of 64, not 8");
  attend = {.H = 8, .Hkv = 8, .Dh = 1, .scale = 1, .cap = 0, .window = 0, .format = KvFormat::bf16, .donor = {}};
  EXPECT_EQ(says([&](Builder& b, Value x) { b.attend(x, x, x, attend); }),
            "corrupt_file: kv_append kv_append1: a bf16 KV cache needs heads of an even width, not 1");
}

TEST(Builder, weights_and_angles_are_listed_once) {
  Start s;
  EXPECT_EQ(s.b.matrix("w", 3, 8).id, s.b.matrix("w", 3, 8).id);
  const RopeSpec a{.inv_freq = {1}, .rot = 2, .pair_stride = 1}, other{.inv_freq = {2}, .rot = 2, .pair_stride = 1};
  const Value first = s.b.rope_angles(a);
  EXPECT_EQ(s.b.rope_angles(a).id, first.id);
  EXPECT_NE(s.b.rope_angles(other).id, first.id);
  EXPECT_EQ(s.b.program().ropes.size(), 2u);
}

TEST(Builder, layers_of_equal_shape_window_and_format_share_a_group) {
  Start s;
  const auto layer = [&](int64_t window, KvFormat format) {
    s.b.attend(s.x, s.x, s.x,
               {.H = 1, .Hkv = 1, .Dh = 8, .scale = 1, .cap = 0, .window = window, .format = format, .donor = {}});
  };
  layer(0, KvFormat::bf16);
  layer(16, KvFormat::bf16);
  layer(0, KvFormat::bf16);
  layer(0, KvFormat::f32);
  const Program& p = s.b.program();
  ASSERT_EQ(p.kv_groups.size(), 3u);
  EXPECT_EQ(p.kv_groups[0].layers, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(p.kv_layers[2].group, 0);
  EXPECT_EQ(p.kv_layers[2].index, 1);
  EXPECT_EQ(p.kv_groups[1].window, 16);
}

TEST(ToString, prints_one_line_an_op) {
  Builder b(DType::bf16);
  b.segment("embed");
  const Value x = b.embed(b.matrix("table", 7, 8));
  const RopeSpec spec{.inv_freq = {1}, .rot = 2, .pair_stride = 1};
  const Value angles = b.rope_angles(spec);
  b.segment("layers.0");
  const Value q = b.rope(b.linear(x, b.matrix("layers.0.q", 8, 8), b.vector("layers.0.q.bias", 8)), angles, 4, 2);
  const Value y = b.attend(
      q, x, x, {.H = 1, .Hkv = 1, .Dh = 8, .scale = 1, .cap = 0, .window = 0, .format = KvFormat::bf16, .donor = {}});
  b.segment("head");
  const Program p = b.finish({b.linear(b.gather_rows(y), b.matrix("table", 7, 8), {}, true)});
  EXPECT_EQ(to_string(p), R"(%1[8] bf16 = embed(table)  # table
%2[2] f32 = rope_angles()  # rope_angles0
%5[8] bf16 = linear(%1, layers.0.q, layers.0.q.bias)  # layers.0.q
%6[8] bf16 = rope(%5, %2)  # layers.0.rope3
 = kv_append(%1, %1)  # layers.0.kv_append4
%7[8] bf16 = attention(%6)  # layers.0.attention5
%8[8] bf16 = gather_rows(%7)  # head.gather_rows6
%9[7] f32 = linear(%8, table, -)  # table
)");
  ASSERT_EQ(p.segments.size(), 3u);
  EXPECT_EQ(p.segments[1].begin, 2);
  EXPECT_EQ(p.segments[1].end, 6);
  EXPECT_EQ(p.segments[2].end, 8);
}

}  // namespace
}  // namespace hearth::graph
