// The histogram of a distribution against its definition, and the logits that a scheduler hands out for it.
#include "decode/signal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "decode/answers.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Signal, equals_the_definition_on_random_rows) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    std::vector<float> z(1 + random.below(3000));
    for (float& value : z) value = static_cast<float>(6 * random.normal());
    z[random.below(z.size())] = -kInf;
    if (z.size() == 1) z[0] = 3;
    if (seed % 3 == 0 && z.size() > 2) z[random.below(z.size())] = NAN;
    long double sum = 0;
    for (const float value : z) sum += std::isnan(value) ? 0 : std::exp(static_cast<long double>(value));
    const Signal signal = signal_of(z);
    std::array<int64_t, kSignalBins> count{};
    std::array<double, kSignalBins> mass{};
    double entropy = 0, total = 0;
    int64_t tokens = 0, doubtful = 0;
    for (const float value : z) {
      const long double l = std::isnan(value) ? -static_cast<long double>(kInf) : value - std::log(sum);
      const long double at = (l - std::log(1e-6L)) / (-std::log(1e-6L) / kSignalBins);
      if (at > 0 && std::fabs(at - std::round(at)) < 1e-12L) ++doubtful;
      const auto bin = static_cast<size_t>(at < 0 ? 0 : std::min(at, static_cast<long double>(kSignalBins - 1)));
      ++count[bin];
      mass[bin] += static_cast<double>(std::exp(l));
      if (l > -100000) entropy -= static_cast<double>(std::exp(l) * l);
    }
    ASSERT_EQ(doubtful, 0) << seed;
    EXPECT_EQ(signal.count, count) << seed;
    for (size_t i = 0; i < mass.size(); ++i) {
      EXPECT_NEAR(signal.mass[i], mass[i], 1e-12) << seed << " bin " << i;
      total += signal.mass[i];
      tokens += signal.count[i];
    }
    EXPECT_NEAR(total, 1, 1e-12);
    EXPECT_EQ(tokens, static_cast<int64_t>(z.size()));
    EXPECT_NEAR(signal.entropy, entropy, 1e-10);
  }
}

TEST(Signal, edges_belong_where_they_should) {
  const Signal sure = signal_of(std::vector<float>{0, -kInf, -kInf});
  EXPECT_EQ(sure.count[kSignalBins - 1], 1) << "certainty is in the last bin";
  EXPECT_EQ(sure.count[0], 2);
  EXPECT_EQ(sure.entropy, 0);
  ASSERT_EQ(sure.top.size(), 1u) << "what is never drawn is not among the likeliest";
  const Signal rare = signal_of(std::vector<float>{0, -13.7f, -13.9f, -200});
  EXPECT_EQ(rare.count[0], 3) << "below the floor, and just above it";
  const Signal even = signal_of(std::vector<float>(4, 7.0f));
  EXPECT_NEAR(even.entropy, std::log(4.0), 1e-15);
  EXPECT_EQ(even.top.front().first, 0);
  EXPECT_EQ(even.top.back().first, 3);
}

TEST(Signal, the_likeliest_fall_and_ties_go_to_the_lower_id) {
  std::vector<float> z(40);
  for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<float>(i * 7 % 20);
  const Signal signal = signal_of(z);
  ASSERT_EQ(signal.top.size(), static_cast<size_t>(kSignalTop));
  std::vector<int32_t> ids(z.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::ranges::stable_sort(ids,
                           [&](int32_t a, int32_t b) { return z[static_cast<size_t>(a)] > z[static_cast<size_t>(b)]; });
  for (size_t i = 0; i < signal.top.size(); ++i) EXPECT_EQ(signal.top[i].first, ids[i]);
}

TEST(Signal, a_row_without_a_distribution_is_refused) {
  for (const std::vector<float>& z : {std::vector<float>{NAN, NAN}, {-kInf}, {0, kInf}, {}})
    EXPECT_TRUE(test::outcome([&] { signal_of(z); }).starts_with("corrupt_file")) << z.size();
}

struct Never final : Constraint {
  void apply(std::span<float> logits) override { std::ranges::fill(logits.subspan(1), -kInf); }
  void accept(int32_t) override {}
  bool finished() const override { return false; }
};

TEST(Scheduler, hands_out_the_logits_behind_a_prompt_as_the_model_gave_them) {
  const auto engine = tiny_engine({}, rows(4));
  const Ids prompt = prompt_ids(90);
  std::vector<float> want;
  evaluate(*engine, prompt, [&](int64_t position, std::span<const float> logits) {
    if (position == 89) want.assign(logits.begin(), logits.end());
  });
  ASSERT_FALSE(want.empty());
  Request changed = asked(prompt, 3);
  changed.sampler = {.temperature = 1, .repetition_penalty = 2, .logit_bias = {{5, 50.0f}}, .seed = 3};
  changed.constraint = std::make_shared<Never>();
  Scheduler scheduler(*engine);
  Answer none, drawn, warm, others[2];
  scheduler.submit(asked(prompt, 0), into(none));
  scheduler.submit(changed, into(drawn));
  drain(scheduler);
  scheduler.submit(asked(prompt, 0), into(warm));
  scheduler.submit_together({{asked(prompt, 2), into(others[0])}, {asked(prompt, 2), into(others[1])}});
  drain(scheduler);
  EXPECT_TRUE(none.ids.empty());
  EXPECT_EQ(none.end, "length");
  EXPECT_GT(warm.cached, 0);
  EXPECT_EQ(drawn.ids, (Ids{0, 0, 0}));
  for (const Answer* answer : {&none, &drawn, &warm, &others[0], &others[1]}) EXPECT_EQ(answer->logits, want);
}

}  // namespace
}  // namespace hearth::decode
