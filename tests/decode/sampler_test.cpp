// Every rule of the sampler on distributions made by hand, and the frequencies of its draws.
#include "decode/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

using Floats = std::vector<float>;
constexpr float kInf = std::numeric_limits<float>::infinity();
const Floats kSix = {0, 1, 2, -1, 0.5f, 1.5f};

Floats logs(const std::vector<double>& probabilities) {
  Floats z;
  for (const double p : probabilities) z.push_back(static_cast<float>(std::log(p)));
  return z;
}

// Ids that are still in after the sets of `options`, at temperature 1.
std::vector<int32_t> kept(SamplerOptions options, Floats logits, std::vector<int32_t> exempt = {}) {
  options.temperature = 1;
  Sampler sampler(options, static_cast<int64_t>(logits.size()), std::move(exempt));
  sampler.sample(logits, {}, 0);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -kInf) ids.push_back(static_cast<int32_t>(i));
  return ids;
}
using Ids = std::vector<int32_t>;

Sampled greedy(const SamplerOptions& options, Floats logits, const Ids& history = {}) {
  Sampler sampler(options, static_cast<int64_t>(logits.size()), {});
  return sampler.sample(logits, history, 0);
}

// Logits after the penalties, up to the constant that log-softmax takes away: differences to token 0.
Floats penalized(const SamplerOptions& options, Floats logits, const Ids& history) {
  Sampler sampler(options, static_cast<int64_t>(logits.size()), {});
  sampler.sample(logits, history, 0);
  Floats differences;
  for (const float z : logits) differences.push_back(z - logits[0]);
  return differences;
}

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST(Argmax, ties_go_to_the_lower_id_and_nan_never_wins) {
  EXPECT_EQ(argmax(Floats{1, 3, 3, 2}), 1);
  EXPECT_EQ(argmax(Floats{NAN, -kInf, -5, NAN}), 2);
  EXPECT_EQ(argmax(Floats{NAN, NAN}), 0);
  Floats long_row(5000, 1);  // several blocks
  long_row[1234] = long_row[1300] = long_row[4999] = 2;
  long_row[0] = long_row[4000] = NAN;
  EXPECT_EQ(argmax(long_row), 1234);
  long_row[4999] = 3;
  EXPECT_EQ(argmax(long_row), 4999);
}

TEST(Sampler, draws_the_same_where_nobody_wants_log_probabilities) {
  Random random(11);
  for (uint64_t step = 0; step < 200; ++step) {
    SamplerOptions options{.temperature = step % 2 ? 0.8 : 0, .top_p = step % 3 ? 1 : 0.9, .seed = step};
    Floats row(700);
    for (float& v : row) v = static_cast<float>(3 * random.normal());
    Floats same = row;
    Sampler with(options, 700, {}, 0), without(options, 700, {}, std::nullopt);
    const Sampled want = with.sample(row, {}, step), got = without.sample(same, {}, step);
    ASSERT_EQ(got.id, want.id);
    EXPECT_LT(want.logprob, 0);
    EXPECT_EQ(got.logprob, 0);
  }
}

TEST(LogSoftmax, is_the_definition_and_drops_nan) {
  Floats z = {0, std::log(3.0f), -kInf, NAN};
  ASSERT_TRUE(log_softmax(z));
  EXPECT_FLOAT_EQ(z[0], std::log(0.25f));
  EXPECT_FLOAT_EQ(z[1], std::log(0.75f));
  EXPECT_EQ(z[2], -kInf);
  EXPECT_EQ(z[3], -kInf);
  Floats large = {10000, 10000};
  ASSERT_TRUE(log_softmax(large));
  EXPECT_FLOAT_EQ(large[0], std::log(0.5f));
  for (Floats none : {Floats{-kInf, NAN}, Floats{NAN}, Floats{kInf, 0}}) EXPECT_FALSE(log_softmax(none));
}

TEST(Sampler, temperature_zero_takes_the_likeliest_and_reports_its_logprob) {
  const Sampled s = greedy({}, logs({0.2, 0.3, 0.3, 0.2}));
  EXPECT_EQ(s.id, 1);
  EXPECT_FLOAT_EQ(s.logprob, std::log(0.3f));
}

// Lengths around the blocks of the fp32 sum; values far below the highest and NaN count as nothing.
TEST(Sampler, greedy_logprob_agrees_with_the_log_softmax) {
  for (const size_t V : {1, 15, 16, 17, 255, 256, 257, 3000}) {
    Floats z(V);
    for (size_t i = 0; i < V; ++i) z[i] = 6 * std::sin(static_cast<float>(i * i + V));
    if (V > 20) {
      z[3] = NAN;
      z[7] = -kInf;
      z[11] = -1e6f;
    }
    Floats l = z;
    ASSERT_TRUE(log_softmax(l));
    const Sampled s = greedy({}, z);
    EXPECT_EQ(s.id, argmax(z)) << V;
    // Both are rounded to fp32, half a unit in the last place of the result each. An fp32 term is right to two units,
    // and its exponent, down to -12 here, was rounded before; relative errors of the sum are absolute ones of its log.
    const float want = l[static_cast<size_t>(s.id)];
    EXPECT_NEAR(s.logprob, want, std::fabs(want) * 0x1p-23 + 0x1p-22 + 12 * 0x1p-24) << V;
  }
}

TEST(Sampler, reported_logprobs_stand_before_the_sets_and_the_temperature) {
  SamplerOptions o;
  o.temperature = 0.25;
  o.top_k = 1;
  const Sampled s = greedy(o, logs({0.1, 0.6, 0.3}));
  EXPECT_EQ(s.id, 1);
  EXPECT_FLOAT_EQ(s.logprob, std::log(0.6f));
}

TEST(TopLogprobs, are_the_likeliest_before_the_sets_with_ties_by_id) {
  const Floats z = logs({0.1, 0.3, 0.2, 0.3, 0.1});
  for (const double temperature : {0.0, 0.5}) {
    SamplerOptions o;
    o.temperature = temperature;
    o.top_k = 1;
    Sampler sampler(o, 5, {}, 4);
    EXPECT_TRUE(sampler.top().empty());
    Floats l = z;
    const Sampled s = sampler.sample(l, {}, 0);
    ASSERT_EQ(sampler.top().size(), 4u);
    const Ids ids = {1, 3, 2, 0};
    const std::vector<double> p = {0.3, 0.3, 0.2, 0.1};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(sampler.top()[i].first, ids[i]);
      EXPECT_NEAR(sampler.top()[i].second, std::log(p[i]), 1e-6);
    }
    EXPECT_EQ(sampler.top()[0], std::pair(s.id, s.logprob));
    l = {1, -kInf, NAN, -kInf, 0};  // what cannot be drawn has none
    sampler.sample(l, {}, 1);
    ASSERT_EQ(sampler.top().size(), 2u);
    EXPECT_EQ(sampler.top()[0].first, 0);
    EXPECT_EQ(sampler.top()[1].first, 4);
    EXPECT_NEAR(sampler.top()[1].second, -1 - std::log(1 + std::exp(-1.0)), 1e-6);
  }
  Sampler none({}, 5, {});
  Floats l = z;
  none.sample(l, {}, 0);
  EXPECT_TRUE(none.top().empty());
}

// Against a sort of all, with lists longer and shorter than the vocabulary.
TEST(TopLogprobs, equal_a_sort) {
  for (const int64_t V : {3, 300}) {
    Floats z(static_cast<size_t>(V));
    for (size_t i = 0; i < z.size(); ++i) z[i] = std::round(8 * std::sin(static_cast<float>(i * i + 1)));
    Ids order(z.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::ranges::stable_sort(
        order, [&](int32_t a, int32_t b) { return z[static_cast<size_t>(a)] > z[static_cast<size_t>(b)]; });
    Sampler sampler({}, V, {}, 20);
    Floats l = z;
    sampler.sample(l, {}, 0);
    ASSERT_EQ(sampler.top().size(), std::min<size_t>(20, z.size()));
    for (size_t i = 0; i < sampler.top().size(); ++i) EXPECT_EQ(sampler.top()[i].first, order[i]) << i;
  }
}

TEST(TopP, keeps_the_smallest_set_that_reaches_it) {
  const Floats z = logs({0.1, 0.4, 0.2, 0.3});
  const auto at = [&](double p) {
    SamplerOptions o;
    o.top_p = p;
    return kept(o, z);
  };
  EXPECT_EQ(at(1), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(at(0.95), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(at(0.85), (Ids{1, 2, 3}));
  EXPECT_EQ(at(0.65), (Ids{1, 3}));
  EXPECT_EQ(at(0.35), Ids{1});
  EXPECT_EQ(at(1e-9), Ids{1});
}

TEST(TopP, ties_at_the_edge_keep_the_lower_id) {
  SamplerOptions o;
  o.top_p = 0.45;
  EXPECT_EQ(kept(o, logs({0.25, 0.25, 0.25, 0.25})), (Ids{0, 1}));
  // More tied tokens than the first piece of the sort holds.
  Floats flat(1000, 0.0f);
  o.top_p = 0.4995;
  const Ids ids = kept(o, flat);
  ASSERT_EQ(ids.size(), 500u);
  EXPECT_EQ(ids.front(), 0);
  EXPECT_EQ(ids.back(), 499);
}

TEST(MinP, keeps_what_is_likely_enough_beside_the_best) {
  SamplerOptions o;
  o.min_p = 0.49;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{1, 2, 3}));
  o.min_p = 0.6;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{1, 3}));
  o.min_p = 1;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{1}));
}

TEST(TopK, keeps_k_and_ties_go_to_the_lower_id) {
  SamplerOptions o;
  o.top_k = 2;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{1, 3}));
  EXPECT_EQ(kept(o, logs({0.25, 0.25, 0.25, 0.25})), (Ids{0, 1}));
  o.top_k = 9;
  EXPECT_EQ(kept(o, logs({0.5, 0.5})), (Ids{0, 1}));
}

TEST(Xtc, drops_all_above_the_threshold_but_the_least_likely) {
  SamplerOptions o;
  o.xtc_probability = 1;
  o.xtc_threshold = 0.15;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{0, 2}));
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3}), {1}), (Ids{0, 1, 2}));  // an end id or a newline stays
  o.xtc_threshold = 0.35;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{0, 1, 2, 3}));  // one above it: that one stays
  o.xtc_threshold = 0.9;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{0, 1, 2, 3}));
}

TEST(Xtc, happens_with_its_probability_by_step) {
  SamplerOptions o;
  o.temperature = 1;
  o.xtc_probability = 0.3;
  o.xtc_threshold = 0.15;
  o.seed = 11;
  Sampler sampler(o, 2, {});
  int happened = 0;
  for (uint64_t step = 0; step < 2000; ++step) {
    Floats z = logs({0.6, 0.4});
    sampler.sample(z, {}, step);
    happened += z[0] == -kInf;
  }
  EXPECT_NEAR(happened, 600, 4 * std::sqrt(2000 * 0.3 * 0.7));
}

TEST(Sets, follow_one_another_in_order) {
  // top-p first: the mass is that of the whole distribution, not of what top-k leaves.
  SamplerOptions o;
  o.top_p = 0.55;
  o.top_k = 3;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), (Ids{1, 3}));
  o.top_k = 1;
  EXPECT_EQ(kept(o, logs({0.1, 0.4, 0.2, 0.3})), Ids{1});
}

TEST(Penalties, repetition_once_a_distinct_token) {
  SamplerOptions o;
  o.repetition_penalty = 2;
  expect_near(penalized(o, {0, 4, -4, 3}, {1, 1, 2}), {0, 2, -8, 3});
  o.repetition_penalty = 0;  // off, as 1
  expect_near(penalized(o, {0, 4, -4, 3}, {1, 1, 2}), {0, 4, -4, 3});
}

TEST(Penalties, presence_and_frequency) {
  SamplerOptions o;
  o.presence_penalty = 0.5;
  expect_near(penalized(o, {0, 4, -4, 3}, {1, 1, 2}), {0, 3.5, -4.5, 3});
  o.presence_penalty = 0;
  o.frequency_penalty = 0.5;
  expect_near(penalized(o, {0, 4, -4, 3}, {1, 1, 2}), {0, 3, -4.5, 3});
  o.presence_penalty = 1;
  o.repetition_penalty = 2;  // in the order repetition, presence, frequency
  expect_near(penalized(o, {0, 4, -4, 3}, {1, 1, 2}), {0, 2 - 1 - 1, -8 - 1 - 0.5, 3});
}

TEST(Penalties, see_their_windows_alone) {
  SamplerOptions o;
  o.presence_penalty = 1;
  o.presence_context = 2;
  expect_near(penalized(o, {0, 4, 4, 4}, {1, 2, 3}), {0, 4, 3, 3});
  o.presence_context = 0;  // the whole history
  expect_near(penalized(o, {0, 4, 4, 4}, {1, 2, 3}), {0, 3, 3, 3});
  o.presence_penalty = 0;
  o.frequency_penalty = 1;
  o.frequency_context = 3;
  expect_near(penalized(o, {0, 4, 4, 4}, {1, 1, 1, 2}), {0, 2, 3, 4});
  // The default is 20 tokens.
  SamplerOptions d;
  d.repetition_penalty = 2;
  Ids history = {1};
  history.insert(history.end(), 20, 2);
  expect_near(penalized(d, {0, 4, 4, 4}, history), {0, 4, 2, 4});
}

TEST(LogitBias, comes_first) {
  SamplerOptions o;
  o.logit_bias = {{3, 5.0f}, {1, -kInf}};
  o.repetition_penalty = 2;
  const Floats z = penalized(o, {0, 4, 1, -1}, {3});
  EXPECT_EQ(z[1], -kInf);
  EXPECT_NEAR(z[3], 2, 1e-5);  // (-1 + 5) / 2
  EXPECT_EQ(greedy(o, {0, 4, 1, -1}).id, 3);
}

TEST(Sampler, passes_over_nan_and_minus_infinity) {
  SamplerOptions o;
  o.temperature = 1;
  for (uint64_t step = 0; step < 50; ++step) {
    Sampler sampler(o, 4, {});
    Floats z = {NAN, 1, -kInf, NAN};
    const Sampled s = sampler.sample(z, {}, step);
    EXPECT_EQ(s.id, 1);
    EXPECT_FLOAT_EQ(s.logprob, 0);
  }
  for (const double temperature : {0.0, 1.0}) {
    o.temperature = temperature;
    for (const Floats& z : {Floats{-kInf, NAN}, Floats{1, kInf}})
      EXPECT_EQ(test::outcome([&] { greedy(o, z); }),
                "corrupt_file: 1 of 2 logits are NaN or infinite, so no token can be drawn");
    EXPECT_EQ(test::outcome([&] { greedy(o, {-kInf, -kInf}); }),
              "invalid_argument: no token can be drawn: the biases leave none");
  }
}

// 1 / T passes the largest float from T = 2.9e-39 on; far scores are then -inf, the best one must stay.
TEST(Sampler, the_least_temperatures_take_the_likeliest) {
  for (const double temperature : {1e-3, 1e-30, 1e-40, 1e-300, 5e-324}) {
    SamplerOptions o;
    o.temperature = temperature;
    Floats z(300, -2.0f);
    z[77] = 1;
    const Sampled s = greedy(o, z);
    EXPECT_EQ(s.id, 77) << temperature;
    EXPECT_TRUE(std::isfinite(s.logprob));
  }
}

TEST(Draw, is_a_pure_function_of_seed_step_and_logits) {
  SamplerOptions o;
  o.temperature = 1;
  o.seed = 42;
  const auto sequence = [&] {
    Ids ids;
    Sampler sampler(o, 50, {});
    for (uint64_t step = 0; step < 40; ++step) {
      Floats z(50, 0.0f);
      ids.push_back(sampler.sample(z, {}, step).id);
    }
    return ids;
  };
  const Ids first = sequence();
  EXPECT_EQ(sequence(), first);
  o.seed = 43;
  EXPECT_NE(sequence(), first);
}

// 10,000 draws with a fixed seed; chi-square with 5 degrees of freedom passes 20.5 once in a thousand.
TEST(Draw, follows_the_softmax_at_its_temperature) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    SamplerOptions o;
    o.temperature = temperature;
    o.seed = 7;
    Sampler sampler(o, 6, {});
    const Floats logits = {0, 1, 2, -1, 0.5f, 1.5f};
    std::vector<double> expected, seen(6, 0);
    double sum = 0;
    for (const float z : logits) sum += std::exp(z / temperature);
    for (const float z : logits) expected.push_back(10000 * std::exp(z / temperature) / sum);
    for (uint64_t step = 0; step < 10000; ++step) {
      Floats z = logits;
      ++seen[static_cast<size_t>(sampler.sample(z, {}, step).id)];
    }
    double chi = 0;
    for (size_t i = 0; i < 6; ++i) chi += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
    EXPECT_LT(chi, 20.5) << temperature;
  }
}

TEST(Hlg, straight_in_the_middle_and_logarithmic_outside) {
  // Pivot at the top minus 6; width 4, shoulder 1, m = 1: scores of l - mu = 6 and 0 differ by 4 + ln(1 + 2) instead of
  // 6, so the draw is flatter than softmax. Frequencies tell.
  SamplerOptions o;
  o.hlg = true;
  o.hlg_shoulder = 1;
  o.temperature = 1;
  o.seed = 3;
  Sampler sampler(o, 2, {});
  const double gap = 4 + std::log(3.0), p = 1 / (1 + std::exp(-gap));
  int second = 0;
  for (uint64_t step = 0; step < 20000; ++step) {
    Floats z = {0, -6};
    const Sampled s = sampler.sample(z, {}, step);
    second += s.id == 1;
    if (s.id == 1) {
      EXPECT_NEAR(s.logprob, -6 - std::log(1 + std::exp(-6.0)), 1e-5);
    }
  }
  EXPECT_NEAR(second, 20000 * (1 - p), 4 * std::sqrt(20000 * p * (1 - p)));
}

// Draws of a curve over six tokens against the frequencies that its scores give; chi-square with 5 degrees of freedom.
void expect_frequencies(const SamplerOptions& options, const std::vector<double>& scores) {
  Sampler sampler(options, 6, {});
  std::vector<double> seen(6, 0);
  double sum = 0;
  for (const double s : scores) sum += std::exp(s);
  for (uint64_t step = 0; step < 10000; ++step) {
    Floats z = kSix;
    ++seen[static_cast<size_t>(sampler.sample(z, {}, step).id)];
  }
  double chi = 0;
  for (size_t i = 0; i < 6; ++i) {
    const double expected = 10000 * std::exp(scores[i]) / sum;
    chi += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  EXPECT_LT(chi, 20.5);
}

std::vector<double> log_probabilities(const Floats& z) {
  double sum = 0;
  for (const float v : z) sum += std::exp(double{v});
  std::vector<double> l;
  for (const float v : z) l.push_back(double{v} - std::log(sum));
  return l;
}

// The definition, spelled out a second time.
double bend(double z, double m, double w, double a, double b) {
  if (std::fabs(z) <= w) return m * z;
  return z > 0 ? m * w + m * b * std::log(1 + (z - w) / b) : -m * w - m * a * std::log(1 + (-z - w) / a);
}

TEST(Hlg, pivots_of_the_whole_distribution) {
  const std::vector<double> l = log_probabilities(kSix);
  double mean = 0;
  for (const double v : l) mean += std::exp(v) * v;
  // Likeliest first: 0.43, 0.26, 0.16, ...: half the mass is reached at the second.
  for (const auto& [pivot, mu] :
       {std::pair{HlgPivot::top, l[2] - 1.5}, std::pair{HlgPivot::entropy, mean}, std::pair{HlgPivot::median, l[5]}}) {
    SamplerOptions o;
    o.temperature = 0.5;
    o.hlg = true;
    o.hlg_pivot = pivot;
    o.hlg_pivot_offset = 1.5;
    o.hlg_width = 0.3;
    o.hlg_toe = 0.5;
    o.hlg_shoulder = 0.25;
    o.seed = 12;
    o.top_k = 1;  // replaced, as top-p is
    o.top_p = 0.1;
    std::vector<double> scores;
    for (const double v : l) scores.push_back(bend(v - mu, 2, 0.3, 0.5, 0.25));
    expect_frequencies(o, scores);
  }
  EXPECT_EQ(parse_hlg_pivot("median"), HlgPivot::median);
  EXPECT_EQ(test::outcome([] { parse_hlg_pivot("mean"); }),
            "invalid_argument: hlg-pivot is mean, expected top, entropy or median");
}

// Whatever the pivot, a curve that is straight throughout draws what the temperature alone draws.
TEST(Hlg, a_huge_width_equals_the_temperature) {
  for (const HlgPivot pivot : {HlgPivot::top, HlgPivot::entropy, HlgPivot::median})
    for (const double temperature : {0.3, 1.0, 1.7, 5e-324}) {
      SamplerOptions plain;
      plain.temperature = temperature;
      plain.seed = 5;
      SamplerOptions o = plain;
      o.hlg = true;
      o.hlg_width = 1e6;
      o.hlg_pivot = pivot;
      Sampler want(plain, 6, {}), got(o, 6, {});
      for (uint64_t step = 0; step < 500; ++step) {
        Floats a = kSix, b = kSix;
        const Sampled x = want.sample(a, {}, step), y = got.sample(b, {}, step);
        ASSERT_EQ(x.id, y.id) << name_of(pivot) << " " << temperature << " " << step;
        ASSERT_EQ(x.logprob, y.logprob);
      }
    }
}

TEST(Curve, draws_from_the_softmax_of_the_curve) {
  SamplerOptions o;
  o.curve = {{0.5, 0.05}, {10, 30}, {40, 35}, {100, 50}};
  o.seed = 8;
  const TransferCurve curve(o.curve);
  std::vector<double> scores;
  for (const double l : log_probabilities(kSix)) scores.push_back(curve(l));
  for (const double temperature : {0.0, 0.2}) {  // replaced
    o.temperature = temperature;
    expect_frequencies(o, scores);
  }
}

TEST(Curve, the_identity_equals_temperature_one) {
  SamplerOptions plain;
  plain.temperature = 1;
  plain.seed = 21;
  SamplerOptions o = plain;
  o.curve = {{0.01, 0.01}, {100, 100}};
  Sampler want(plain, 6, {}), got(o, 6, {});
  for (uint64_t step = 0; step < 500; ++step) {
    Floats a = kSix, b = kSix;
    ASSERT_EQ(want.sample(a, {}, step).id, got.sample(b, {}, step).id) << step;
  }
}

TEST(Curve, min_p_and_xtc_go_before_it) {
  SamplerOptions o;
  o.curve = {{1, 100}, {100, 100}};  // flat: all that is left is equally likely
  o.min_p = 0.2;
  EXPECT_EQ(kept(o, logs({0.05, 0.4, 0.25, 0.3})), (Ids{1, 2, 3}));
  o.min_p = 0;
  o.xtc_probability = 1;
  EXPECT_EQ(kept(o, logs({0.05, 0.4, 0.25, 0.3})), (Ids{0, 2}));
}

TEST(Validate, names_option_value_and_range) {
  const auto says = [](auto&& edit) {
    SamplerOptions o;
    edit(o);
    return test::outcome([&] { validate(o, 10); });
  };
  EXPECT_EQ(says([](SamplerOptions&) {}), "accepted");
  EXPECT_EQ(says([](SamplerOptions& o) { o.temperature = -1; }),
            "invalid_argument: temperature is -1, expected 0 to 100");
  EXPECT_EQ(says([](SamplerOptions& o) { o.temperature = NAN; }),
            "invalid_argument: temperature is nan, expected 0 to 100");
  EXPECT_EQ(says([](SamplerOptions& o) { o.top_p = 0; }),
            "invalid_argument: top-p is 0, expected more than 0, up to 1");
  EXPECT_EQ(says([](SamplerOptions& o) { o.top_k = -1; }), "invalid_argument: top-k is -1, expected 0 (off) or more");
  EXPECT_EQ(says([](SamplerOptions& o) { o.min_p = 1.01; }), "invalid_argument: min-p is 1.01, expected 0 to 1");
  EXPECT_EQ(says([](SamplerOptions& o) { o.xtc_probability = 1.5; }),
            "invalid_argument: xtc-probability is 1.5, expected 0 to 1");
  EXPECT_EQ(says([](SamplerOptions& o) { o.repetition_context = -1; }),
            "invalid_argument: repetition-context is -1, expected 0 or more");
  EXPECT_EQ(says([](SamplerOptions& o) { o.logit_bias = {{10, 1.0f}}; }),
            "invalid_argument: logit-bias names token 10, the vocabulary has 10");
  EXPECT_EQ(says([](SamplerOptions& o) { o.logit_bias = {{1, kInf}}; }),
            "invalid_argument: logit-bias of token 1 is inf, expected a number or -inf");
  EXPECT_EQ(says([](SamplerOptions& o) { o.logit_bias = {{1, -kInf}}; }), "accepted");
  EXPECT_EQ(says([](SamplerOptions& o) { o.curve = {{1, 1}}; }),
            "invalid_argument: the curve has 1 points, expected 2 to 64");
  EXPECT_EQ(says([](SamplerOptions& o) {
              o.curve = {{1, 1}, {100, 100}};
              o.hlg = true;
            }),
            "invalid_argument: hlg and curve are both given, expected one of them");
}

}  // namespace
}  // namespace hearth::decode
