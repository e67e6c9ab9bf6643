#include "eval/kl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "base/log.h"
#include "decode/generate.h"
#include "decode/tiny_engine.h"
#include "eval/perplexity.h"
#include "support/outcome.h"

namespace hearth::eval {
namespace {

using Floats = std::vector<float>;
using decode::prompt_ids;
using decode::tiny_engine;

TEST(KlDivergence, equal_rows_give_exactly_zero) {
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    Floats row(1000);
    for (float& v : row) v = static_cast<float>(10 * random.normal());
    EXPECT_EQ(kl_divergence(row, row), 0);
  }
}

TEST(KlDivergence, by_hand_and_not_symmetric) {
  // p = (1/2, 1/2), r = (1/4, 3/4): ln 2 / 2 + ln(2/3) / 2 one way, (ln(1/2) + 3 ln(3/2)) / 4 the other.
  const Floats p = {0, 0}, r = {7, 7 + std::log(3.0f)};
  EXPECT_NEAR(kl_divergence(p, r), 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3), 1e-6);
  EXPECT_NEAR(kl_divergence(r, p), 0.25 * std::log(0.5) + 0.75 * std::log(1.5), 1e-6);
}

TEST(KlDivergence, does_not_change_with_a_shift_and_bears_large_logits) {
  const Floats p = {1000, 998, 1001}, r = {-3, -1, -2}, shifted = {997, 999, 998};
  EXPECT_NEAR(kl_divergence(p, r), kl_divergence(p, shifted), 1e-12);
  EXPECT_TRUE(std::isfinite(kl_divergence({{1e4f, -1e4f}}, {{-1e4f, 1e4f}})));
}

TEST(KlDivergence, impossible_tokens_of_the_source_count_nothing) {
  const float out = -std::numeric_limits<float>::infinity();
  EXPECT_NEAR(kl_divergence(Floats{0, 0, out}, Floats{0, 0, 0}), std::log(1.5), 1e-6);
  EXPECT_EQ(kl_divergence(Floats{0, out}, Floats{0, out}), 0);
}

TEST(Kl, of_a_model_with_itself_is_exactly_zero) {
  const auto a = tiny_engine({}, {.context = 128, .gathered_max = 64}), b = tiny_engine({}, {.context = 128});
  const KlResult r = kl(*a, *b, prompt_ids(70), {.window = 32, .windows_max = 64});
  EXPECT_EQ(r.mean, 0);
  EXPECT_EQ(r.max, 0);
  EXPECT_EQ(r.top1, 1);
  EXPECT_EQ(r.perplexity_a, r.perplexity_b);
  EXPECT_EQ(r.windows, 3);
  EXPECT_EQ(r.positions, 31 + 31 + 5);
  EXPECT_EQ(r.worst.size(), 10u);
}

TEST(Kl, of_two_models_equals_a_direct_computation) {
  const auto a = tiny_engine({.seed = 1}, {.context = 64, .gathered_max = 64});
  const auto b = tiny_engine({.seed = 2}, {.context = 64, .gathered_max = 64});
  const auto ids = prompt_ids(33);  // one token alone in the last window predicts nothing
  const KlResult r = kl(*a, *b, ids, {.window = 16, .windows_max = 64});
  EXPECT_EQ(r.windows, 2);
  EXPECT_EQ(r.positions, 30);
  std::vector<double> values;
  double nats = 0;
  for (const int64_t begin : {0, 16}) {
    std::vector<Floats> p, q;
    const auto window = std::span(ids).subspan(static_cast<size_t>(begin), 16);
    decode::evaluate(*a, window, [&](int64_t, std::span<const float> z) { p.emplace_back(z.begin(), z.end()); });
    decode::evaluate(*b, window, [&](int64_t, std::span<const float> z) { q.emplace_back(z.begin(), z.end()); });
    for (size_t i = 0; i < 15; ++i) {
      values.push_back(kl_divergence(p[i], q[i]));
      nats -= log_probability(q[i], window[i + 1]);
    }
  }
  double sum = 0;
  for (const double v : values) sum += v;
  EXPECT_NEAR(r.mean, sum / 30, 1e-12);
  EXPECT_NEAR(r.perplexity_b, std::exp(nats / 30), 1e-9);
  EXPECT_EQ(r.max, *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(r.worst[0].kl, r.max);
  EXPECT_GT(r.mean, 0.01);
  EXPECT_NE(r.mean, kl(*b, *a, ids, {.window = 16, .windows_max = 64}).mean);
}

// Both models are asked for the same few rows in turn: what comes out does not depend on how many those are.
TEST(Kl, does_not_depend_on_the_rows_of_a_step) {
  const auto ids = prompt_ids(90);
  std::optional<KlResult> first;
  for (const int64_t rows : {1, 7, 64}) {
    const auto a = tiny_engine({.seed = 1}, {.context = 64, .gathered_max = rows});
    const auto b = tiny_engine({.seed = 2}, {.context = 64, .prefill_chunk = 32, .gathered_max = 64});
    const KlResult r = kl(*a, *b, ids, {.window = 40, .windows_max = 64});
    if (!first) first = r;
    EXPECT_EQ(r.mean, first->mean) << rows;
    EXPECT_EQ(r.p99, first->p99);
    EXPECT_EQ(r.perplexity_a, first->perplexity_a);
    ASSERT_EQ(r.worst.size(), 10u);
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(r.worst[i].kl, first->worst[i].kl);
      EXPECT_EQ(r.worst[i].position, first->worst[i].position);
      EXPECT_LE(r.worst[i].kl, r.worst[i > 0 ? i - 1 : 0].kl);
    }
    EXPECT_EQ(a->cache().pages_free(0), 1);  // nothing is held behind it
  }
}

TEST(Kl, a_model_whose_logits_are_no_numbers_is_blamed) {
  const test::TempDir dir;
  test::write_tiny_model({.seed = 3}, dir);
  const std::filesystem::path path = dir.path() / "model.safetensors";
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(bytes - 4);
    file << "\xff\xff\xff\xff";  // one value of the head
  }
  const auto a = tiny_engine({}, {.context = 64});
  log::global().configure({.fd = -1});
  decode::Engine b(model::Model::open(dir.path()), graph::make_reference_executor(1),
                   {.context = 64, .memory_budget = 1'000'000'000});
  log::global().configure({});
  const std::string blame = "corrupt_file: " + (dir.path() / "config.json").string() + ": a logit is NaN or infinite;";
  EXPECT_TRUE(test::outcome([&] { kl(*a, b, prompt_ids(9), {}); }).starts_with(blame));
  EXPECT_TRUE(test::outcome([&] { kl(b, *a, prompt_ids(9), {}); }).starts_with(blame));
}

TEST(Kl, refuses) {
  const auto a = tiny_engine({}), b = tiny_engine({.V = 260});
  EXPECT_EQ(
      test::outcome([&] { kl(*a, *b, prompt_ids(9), {}); }),
      fmt::format("invalid_argument: the vocabularies differ: {} has 258, {} has 260", a->spec().file, b->spec().file));
  EXPECT_EQ(test::outcome([&] { kl(*a, *a, prompt_ids(1), {}); }),
            "invalid_argument: the text has 1 tokens, KL needs at least 2");
  EXPECT_EQ(test::outcome([&] { kl(*a, *a, prompt_ids(9), {.window = 1, .windows_max = 3}); }),
            "invalid_argument: 3 windows of 1 tokens: at least 1 window of 2 is needed");
}

}  // namespace
}  // namespace hearth::eval
