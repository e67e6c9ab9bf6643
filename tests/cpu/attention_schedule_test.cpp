// Every visible (row, head, position) is worked on exactly once, by shares of about equal cost.
#include "cpu/attention_schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace hearth::cpu {
namespace {

struct Batch {
  std::vector<int32_t> ids, row_begin = {0}, kv_len;
  std::vector<graph::MaskKind> masks;

  void add(int64_t T, int64_t S, graph::MaskKind mask = graph::MaskKind::causal) {
    ids.resize(ids.size() + static_cast<size_t>(T));
    row_begin.push_back(static_cast<int32_t>(ids.size()));
    kv_len.push_back(static_cast<int32_t>(S));
    masks.push_back(mask);
  }
  graph::BatchView view() const {
    return {.ids = ids,
            .positions = {},
            .row_begin = row_begin,
            .kv_len = kv_len,
            .tables = {},
            .adapter = {},
            .out_rows = {},
            .masks = masks};
  }
};

int64_t tiles(const AttentionJob& j, const AttentionShape& shape, const graph::BatchView& batch) {
  const int64_t group = shape.group();
  const Visible low = visible(batch, shape, j.sequence, j.row_begin / group);
  const Visible high = visible(batch, shape, j.sequence, (j.row_end - 1) / group);
  const int64_t begin = std::max(low.first / 64, j.chunk_begin * 4),
                end = std::min((high.last + 63) / 64, j.chunk_end * 4);
  return std::max<int64_t>(0, end - begin);
}

void check(const AttentionShape& shape, const Batch& b, int members, double balance) {
  const graph::BatchView batch = b.view();
  AttentionSchedule schedule(shape, batch.M(), batch.B(), 1 << 14, members);
  schedule.build(batch);
  std::map<std::tuple<int, int, int64_t, int64_t>, int> seen;  // sequence, head, row, chunk
  std::map<int64_t, std::tuple<int, int, int64_t>> slots;
  double most = 0, total = 0;
  for (int member = 0; member < members; ++member) {
    double cost = 0;
    for (const AttentionJob& j : schedule.jobs(member)) {
      ASSERT_LT(j.row_begin, j.row_end);
      ASSERT_LT(j.chunk_begin, j.chunk_end);
      ASSERT_LE(j.row_end - j.row_begin, std::max(kJobRows, shape.group()));
      if (j.partial >= 0) {
        ASSERT_LE(j.row_end - j.row_begin, kSplitRows);
        ASSERT_LE(j.partial + j.chunk_end - j.chunk_begin, schedule.slots_max());
      }
      for (int64_t r = j.row_begin; r < j.row_end; ++r)
        for (int64_t c = j.chunk_begin; c < j.chunk_end; ++c) ++seen[{j.sequence, j.kv_head, r, c}];
      cost += static_cast<double>(tiles(j, shape, batch) * (j.row_end - j.row_begin));
    }
    most = std::max(most, cost);
    total += cost;
  }
  for (int64_t s = 0; s < batch.B(); ++s) {
    const int64_t T = batch.row_begin[static_cast<size_t>(s + 1)] - batch.row_begin[static_cast<size_t>(s)];
    for (int64_t h = 0; h < shape.Hkv; ++h)
      for (int64_t r = 0; r < T * shape.group(); ++r) {
        const Visible v = visible(batch, shape, s, r / shape.group());
        for (int64_t c = v.first / 256; c * 256 < v.last; ++c)
          ASSERT_EQ((seen[{static_cast<int>(s), static_cast<int>(h), r, c}]), 1) << "row " << r << ", chunk " << c;
      }
  }
  for (const AttentionMerge& m : schedule.merges()) EXPECT_GT(m.chunks, 1);
  if (balance > 0) {
    EXPECT_LE(most, balance * total / members) << members << " members, Hkv " << shape.Hkv;
  }
}

TEST(AttentionSchedule, decode_is_balanced_for_few_kv_heads) {
  struct {
    AttentionShape shape;
    double balance;
  } cases[] = {{{.H = 9, .Hkv = 3, .Dh = 64}, 1.25},
               {{.H = 4, .Hkv = 1, .Dh = 256}, 1.25},
               {{.H = 14, .Hkv = 2, .Dh = 64}, 1.25}};
  for (const auto& c : cases)
    for (const int64_t S : {200, 800, 2048, 8000}) {
      Batch b;
      b.add(1, S);
      check(c.shape, b, 2, c.balance);
    }
}

TEST(AttentionSchedule, prefill_is_balanced) {
  Batch b;
  b.add(512, 512);
  for (const int members : {2, 3, 4}) check({.H = 4, .Hkv = 1, .Dh = 256}, b, members, 1.2);
  Batch late;
  late.add(256, 4096);
  check({.H = 9, .Hkv = 3, .Dh = 64}, late, 2, 1.1);
}

TEST(AttentionSchedule, covers_random_batches) {
  std::mt19937 random(12);
  for (int i = 0; i < 60; ++i) {
    Batch b;
    const int B = 1 + static_cast<int>(random() % 4);
    for (int s = 0; s < B; ++s) {
      const int64_t T = 1 + static_cast<int64_t>(random() % (random() % 3 ? 3 : 150));
      b.add(T, T + static_cast<int64_t>(random() % 3000),
            random() % 4 ? graph::MaskKind::causal : graph::MaskKind::full);
    }
    const int64_t Hkv = 1 + static_cast<int64_t>(random() % 3), group = 1 + static_cast<int64_t>(random() % 20);
    const int64_t window = random() % 2 ? 0 : 1 + static_cast<int64_t>(random() % 600);
    check({.H = Hkv * group, .Hkv = Hkv, .Dh = random() % 2 ? 64 : 256, .window = window}, b,
          1 + static_cast<int>(random() % 5), 0);
  }
}

}  // namespace
}  // namespace hearth::cpu
