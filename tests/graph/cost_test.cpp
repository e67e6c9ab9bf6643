// Bytes and flops by the cost rules.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/op_info.h"

namespace hearth::graph {
namespace {

constexpr Extents kExtents{.M = 5, .gathered = 2, .S = 100, .B = 3};

TEST(Cost, linear_reads_its_weight_once_and_counts_two_flops_a_product) {
  Builder b(DType::f32);
  const Value x = b.embed(b.matrix("x", 50, 8));
  b.linear(x, b.matrix("w", 16, 8), b.vector("c", 16));
  Program p = b.finish({});
  for (ValueInfo& v : p.values)
    if (v.name == "w" && v.role == Role::weight) v.bytes = 80;  // packed in the file
  const Cost c = cost(p, p.ops[1], kExtents);
  EXPECT_EQ(c.bytes_weights, 80 + 4 * 16);
  EXPECT_EQ(c.bytes, 4 * 5 * (8 + 16));
  EXPECT_EQ(c.flops, 2 * 5 * 16 * 8);
}

TEST(Cost, embed_reads_the_gathered_rows_alone) {
  Builder b(DType::bf16);
  b.embed(b.matrix("x", 50, 8));
  const Program p = b.finish({});
  const Cost c = cost(p, p.ops[0], kExtents);
  EXPECT_EQ(c.bytes_weights, 0);
  EXPECT_EQ(c.bytes, 5 * (4 * 8) + 5 * (2 * 8));
}

TEST(Cost, attention_reads_the_cache_up_to_its_window) {
  for (const int64_t window : {int64_t{0}, int64_t{10}})
    for (const KvFormat format : {KvFormat::bf16, KvFormat::q4}) {
      Builder b(DType::f32);
      const Value x = b.embed(b.matrix("x", 50, 64));
      b.attend(x, x, x,
               {.H = 1, .Hkv = 1, .Dh = 64, .scale = 1, .cap = 0, .window = window, .format = format, .donor = {}});
      const Program p = b.finish({});
      const int64_t S = window ? 10 : 100, position = 2 * (format == KvFormat::bf16 ? 128 : 32 + 4);
      const Cost append = cost(p, p.ops[1], kExtents), attention = cost(p, p.ops[2], kExtents);
      EXPECT_EQ(append.bytes, 5 * position);
      EXPECT_EQ(attention.bytes, 2 * 4 * 5 * 64 + 3 * S * position);
      EXPECT_EQ(attention.flops, 4 * 5 * S * 64);
    }
}

TEST(Cost, rows_after_gather_are_the_gathered_ones) {
  Builder b(DType::f32);
  const Value x = b.embed(b.matrix("x", 50, 8));
  b.linear(b.gather_rows(x), b.matrix("w", 16, 8));
  const Program p = b.finish({});
  EXPECT_EQ(cost(p, p.ops[1], kExtents).bytes, 2 * 4 * 2 * 8);
  EXPECT_EQ(cost(p, p.ops[2], kExtents).flops, 2 * 2 * 16 * 8);
}

TEST(Cost, of_a_program_is_the_sum_of_its_ops) {
  Builder b(DType::f32);
  const Value x = b.embed(b.matrix("x", 50, 8));
  b.gated_act(b.linear(x, b.matrix("g", 16, 8)), b.linear(x, b.matrix("u", 16, 8)), Activation::silu);
  const Program p = b.finish({});
  Cost sum;
  for (const Op& op : p.ops) {
    const Cost c = cost(p, op, kExtents);
    sum.bytes += c.bytes, sum.bytes_weights += c.bytes_weights, sum.flops += c.flops;
  }
  const Cost whole = cost(p, kExtents);
  EXPECT_EQ(whole.bytes, sum.bytes);
  EXPECT_EQ(whole.bytes_weights, 2 * 4 * 16 * 8);
  EXPECT_EQ(whole.flops, sum.flops);
  EXPECT_EQ(whole.flops, 2 * (2 * 5 * 16 * 8) + 9 * 5 * 16);
}

}  // namespace
}  // namespace hearth::graph
