#include <gtest/gtest.h>

#include <random>

#include "graph/builder.h"
#include "graph/passes.h"

namespace hearth::graph {
namespace {

constexpr Limits kLimits{.rows_max = 10, .sequences_max = 2, .positions_max = 0, .gathered_max = 3};

// A random program of elementwise ops, slices and linear_adds over values of few widths.
Program random_program(uint32_t seed) {
  std::mt19937 random(seed);
  Builder b(DType::f32);
  std::vector<Value> values = {b.embed(b.matrix("t", 8, 48)), b.embed(b.matrix("t", 8, 48))};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int i = 0; i < 60; ++i) {
    const Value x = any();
    const int64_t cols = b.program().value(x.id).cols;
    switch (random() % 5) {
      case 0: values.push_back(b.scale(x, 2)); break;
      case 1: values.push_back(cols > 16 ? b.slice_cols(x, 8, cols) : b.scale(x, 3)); break;
      case 2: values.push_back(b.linear(x, b.matrix("w" + std::to_string(cols), 48, cols))); break;
      case 3: {
        const Value z = any();
        if (b.program().value(z.id).cols == 48)
          values.push_back(b.add(b.linear(x, b.matrix("w" + std::to_string(cols), 48, cols)), z));
        break;
      }
      default: values.push_back(b.concat_cols(x, any()));
    }
    if (b.program().value(values.back().id).cols > 400) values.push_back(b.slice_cols(values.back(), 0, 48));
  }
  return b.finish({values.back(), values[values.size() / 2]});
}

struct Life {
  int32_t begin = -1, end = -1;
};

// Plain rereading of the rule: a value lives from the op that makes it to the last op that reads it or a slice of it.
std::vector<Life> lives(const Program& p) {
  std::vector<Life> life(p.values.size());
  std::vector<ValueId> root(p.values.size());
  for (size_t i = 0; i < root.size(); ++i) root[i] = static_cast<ValueId>(i);
  for (int32_t i = 0; i < static_cast<int32_t>(p.ops.size()); ++i) {
    const Op& op = p.ops[static_cast<size_t>(i)];
    if (op.kind == OpKind::slice_cols) root[static_cast<size_t>(op.out[0])] = root[static_cast<size_t>(op.in[0])];
    for (const ValueId id : op.in)
      if (id != kNone) life[static_cast<size_t>(root[static_cast<size_t>(id)])].end = i;
    for (const ValueId id : op.out)
      if (op.kind != OpKind::slice_cols) life[static_cast<size_t>(id)] = {i, i};
  }
  for (const ValueId id : p.results) life[static_cast<size_t>(root[static_cast<size_t>(id)])].end = INT32_MAX;
  return life;
}

TEST(Memory, live_values_never_share_bytes) {
  int in_place = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Program plain = random_program(seed);
    for (const bool reuse : {false, true}) {
      const Program p = reuse ? fuse(plain, {.linear_add = true}) : plain;
      const MemoryMap map = plan_memory(p, kLimits, {.linear_add_in_place = reuse});
      const std::vector<Life> life = lives(p);
      int64_t all = 0;
      for (size_t a = 0; a < p.values.size(); ++a) {
        if (map.offset[a] < 0) continue;
        EXPECT_EQ(map.offset[a] % 64, 0);
        const int64_t bytes = 10 * p.values[a].cols * 4;
        all += (bytes + 63) / 64 * 64;
        EXPECT_LE(map.offset[a] + bytes, map.bytes) << "seed " << seed;
        for (size_t b = a + 1; b < p.values.size(); ++b) {
          if (map.offset[b] < 0) continue;
          const bool together = life[a].begin <= life[b].end && life[b].begin <= life[a].end;
          const bool overlap =
              map.offset[a] < map.offset[b] + 10 * p.values[b].cols * 4 && map.offset[b] < map.offset[a] + bytes;
          if (!together || !overlap) continue;
          // Only a linear_add may write over its summand, exactly where that ends.
          const Op& op = p.ops[static_cast<size_t>(std::max(life[a].begin, life[b].begin))];
          EXPECT_TRUE(reuse && op.kind == OpKind::linear_add && map.offset[a] == map.offset[b] &&
                      std::min(life[a].end, life[b].end) == std::max(life[a].begin, life[b].begin))
              << "seed " << seed << ", values " << a << " and " << b;
          ++in_place;
        }
      }
      EXPECT_LT(map.bytes, all);
    }
  }
  EXPECT_GT(in_place, 0);
}

TEST(Memory, slices_and_weights_have_none_and_results_may_live_elsewhere) {
  Builder b(DType::bf16);
  const Value x = b.embed(b.matrix("t", 8, 32)), s = b.slice_cols(x, 0, 16), y = b.gather_rows(s);
  const Program p = b.finish({y});
  const MemoryMap map = plan_memory(p, kLimits);
  EXPECT_EQ(map.offset[static_cast<size_t>(p.weights[0])], -1);
  EXPECT_EQ(map.offset[static_cast<size_t>(s.id)], -1);
  EXPECT_EQ(map.bytes, 10 * 32 * 4 + 3 * 16 * 4);
  EXPECT_EQ(plan_memory(p, kLimits, {.results = false}).offset[static_cast<size_t>(y.id)], -1);
  EXPECT_EQ(plan_memory(p, kLimits, {.bytes_per_value = 0}).bytes, 10 * 32 * 2 + 128);
}

}  // namespace
}  // namespace hearth::graph
