// attention and kv_append against cases worked by hand; with a cache, without one, and through every mask.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/reference_run.h"

namespace hearth::graph {
namespace {

using Floats = std::vector<float>;

// x = [q | k | v], one head of one column; f32 cache.
Program attend(const AttendSpec& spec, bool cached, int64_t rows) {
  Builder b(DType::f32);
  const int64_t Dq = spec.H * spec.Dh, Dkv = spec.Hkv * spec.Dh;
  const Value x = b.embed(b.matrix("x", rows, Dq + 2 * Dkv));
  const Value q = b.slice_cols(x, 0, Dq), k = b.slice_cols(x, Dq, Dq + Dkv),
              v = b.slice_cols(x, Dq + Dkv, Dq + 2 * Dkv);
  return b.finish({cached ? b.attend(q, k, v, spec) : b.attend_plain(q, k, v, spec)});
}

const AttendSpec kOne{
    .H = 1, .Hkv = 1, .Dh = 1, .scale = 1, .cap = 0, .window = 0, .format = KvFormat::f32, .donor = {}};
const float kLn3 = std::log(3.0f);

TEST(Attention, weighs_values_by_the_softmax_of_the_scores) {
  // Scores of the second row: q . k = 0 and ln 3, so 1/4 and 3/4.
  const Weights w = {{"x", {1, 0, 8, 1, kLn3, 16}}};
  for (const bool cached : {true, false}) {
    const Floats y = run_reference(attend(kOne, cached, 2), w, 2)[0];
    EXPECT_EQ(y[0], 8);  // it sees itself alone
    EXPECT_FLOAT_EQ(y[1], 14);
  }
}

TEST(Attention, scales_and_caps) {
  AttendSpec spec = kOne;
  spec.scale = 2;
  const Weights w = {{"x", {1, 0, 8, 1, kLn3 / 2, 16}}};
  EXPECT_FLOAT_EQ(run_reference(attend(spec, true, 2), w, 2)[0][1], 14);
  spec.cap = 0.5f;
  const float z = 0.5f * std::tanh(kLn3 / 0.5f), p = 1 / (1 + std::exp(-z));
  EXPECT_NEAR(run_reference(attend(spec, true, 2), w, 2)[0][1], 8 + 8 * p, 1e-5f);
}

TEST(Attention, a_window_hides_what_lies_behind) {
  AttendSpec spec = kOne;
  spec.window = 2;  // a row and the one before it
  const Weights w = {{"x", {1, 0, 8, 1, 0, 16, 1, 0, 32}}};
  for (const bool cached : {true, false})
    EXPECT_EQ(run_reference(attend(spec, cached, 3), w, 3)[0], (Floats{8, 12, 24}));
}

TEST(Attention, a_full_mask_sees_the_whole_sequence) {
  const Weights w = {{"x", {1, 0, 8, 1, 0, 16, 1, 0, 32, 1, 0, 64}}};
  for (const bool cached : {true, false}) {
    const Floats y = run_reference(attend(kOne, cached, 4), w, 4,
                                   {.row_begin = {0, 2, 4}, .masks = {MaskKind::full, MaskKind::causal}})[0];
    EXPECT_EQ(y, (Floats{12, 12, 32, 48}));
  }
}

TEST(Attention, query_heads_share_kv_heads) {
  // H 4, Hkv 2: heads 0, 1 read KV head 0, heads 2, 3 KV head 1. One position: y is v.
  AttendSpec spec = kOne;
  spec.H = 4;
  spec.Hkv = 2;
  EXPECT_EQ(run_reference(attend(spec, true, 1), {{"x", {1, 2, 3, 4, 9, 9, 5, 6}}}, 1)[0], (Floats{5, 5, 6, 6}));
}

TEST(Attention, goes_on_behind_what_is_cached) {
  const Program p = attend(kOne, true, 3);
  const Weights w = {{"x", {1, 0, 8, 1, kLn3, 16, 1, 1, 32}}};
  auto executor = make_reference_executor(1);
  const std::vector<int64_t> pages = {2};
  const auto kv = executor->make_kv(p, pages);
  const Floats whole = run_reference(p, w, 3)[0];
  Floats pieces;
  for (int32_t m = 0; m < 3; ++m)
    pieces.push_back(
        run_reference(p, w, 1, {.ids = {m}, .kv_len = {m + 1}, .positions = {m}}, kv.get(), executor.get())[0][0]);
  EXPECT_EQ(pieces, whole);
}

TEST(Attention, a_donor_is_read_and_not_written) {
  Builder b(DType::f32);
  const Value x = b.embed(b.matrix("x", 1, 3));
  const Value q = b.slice_cols(x, 0, 1), k = b.slice_cols(x, 1, 2), v = b.slice_cols(x, 2, 3);
  b.attend(q, k, v, kOne);
  AttendSpec borrowing = kOne;
  borrowing.donor = b.last_kv_layer();
  const Value y = b.attend(q, q, q, borrowing);
  const Program p = b.finish({y});
  EXPECT_EQ(p.kv_layers.size(), 1u);
  EXPECT_EQ(run_reference(p, {{"x", {1, 2, 7}}}, 1)[0], Floats{7});
}

TEST(Attention, crosses_page_borders) {
  // 70 positions, all scores equal: the last row is the mean of v = 0 .. 69.
  Weights w;
  for (int m = 0; m < 70; ++m) w["x"].insert(w["x"].end(), {1.0f, 0.0f, static_cast<float>(m)});
  const Floats y = run_reference(attend(kOne, true, 70), w, 70)[0];
  EXPECT_FLOAT_EQ(y[69], 34.5f);
  EXPECT_FLOAT_EQ(y[64], 32);
}

}  // namespace
}  // namespace hearth::graph
