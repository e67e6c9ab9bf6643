// What a constraint forbids is not drawn, and what goes wrong in it ends its own row.
#include "decode/constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "decode/answers.h"

namespace hearth::decode {
namespace {

// Allows ids from a set alone; ends after so many. May throw where it is told to.
struct Only final : Constraint {
  explicit Only(std::set<int32_t> ids, int64_t most = 1000) : allowed(std::move(ids)), left(most) {}
  void apply(std::span<float> logits) override {
    ++applied;
    if (fails == "apply") fail(ErrorKind::invalid_argument, "apply says no");
    for (size_t i = 0; i < logits.size(); ++i)
      if (!allowed.contains(static_cast<int32_t>(i))) logits[i] = -INFINITY;
  }
  void accept(int32_t id) override {
    if (fails == "accept") fail(ErrorKind::invalid_argument, "accept says no");
    if (fails == "memory") throw std::bad_alloc();
    EXPECT_TRUE(allowed.contains(id));
    accepted.push_back(id);
    --left;
  }
  bool finished() const override {
    if (fails == "finished") fail(ErrorKind::invalid_argument, "finished says no");
    return left <= 0;
  }
  std::set<int32_t> allowed;
  int64_t left;
  std::string fails;
  Ids accepted;
  int64_t applied = 0;
};

Request constrained(std::shared_ptr<Only> only, int64_t max_tokens = 20) {
  Request r = asked(prompt_ids(7), max_tokens);
  r.constraint = std::move(only);
  return r;
}

TEST(Constraint, allows_what_it_allows_and_is_told_what_was_drawn) {
  const auto engine = tiny_engine({}, rows(3));
  const auto greedy = std::make_shared<Only>(std::set<int32_t>{3, 5, 8}), drawn = std::make_shared<Only>(*greedy);
  Request hot = constrained(drawn);
  hot.sampler = {.temperature = 3, .seed = 4};
  hot.sampler.logit_bias = {{3, 100.0f}, {9, 100.0f}};  // a bias does not bring back what is forbidden
  hot.top_logprobs = 20;
  Answer first, second, free;
  Scheduler scheduler(*engine);
  scheduler.submit(constrained(greedy), into(first));
  scheduler.submit(hot, into(second));
  scheduler.submit(asked(prompt_ids(7)), into(free));
  drain(scheduler);
  EXPECT_EQ(first.ids.size(), 20u);
  EXPECT_EQ(first.ids, greedy->accepted);
  EXPECT_EQ(second.ids, drawn->accepted);
  EXPECT_EQ(first.end, "length");
  EXPECT_EQ(free.ids, solo(*engine, asked(prompt_ids(7))).ids) << "the others see nothing of it";
  for (size_t i = 0; i < second.ids.size(); ++i) {
    ASSERT_EQ(second.tops[i].size(), 3u) << "only what can be drawn has a log-probability";
    double mass = 0;
    for (const auto& [id, logprob] : second.tops[i]) mass += std::exp(double{logprob});
    EXPECT_NEAR(mass, 1, 1e-5) << "of what is allowed";
  }
}

TEST(Constraint, one_that_allows_everything_changes_nothing) {
  const auto engine = tiny_engine({}, rows(2));
  std::set<int32_t> all;
  for (int32_t id = 0; id < 258; ++id) all.insert(id);
  Request plain = asked(prompt_ids(7));
  plain.sampler = {.temperature = 1, .seed = 9};
  plain.top_logprobs = 3;
  Request with = plain;
  with.constraint = std::make_shared<Only>(all);
  Answer a, b;
  Scheduler scheduler(*engine);
  scheduler.submit(plain, into(a));
  scheduler.submit(with, into(b));
  drain(scheduler);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.logprobs, b.logprobs);
  EXPECT_EQ(a.tops, b.tops);
}

TEST(Constraint, ends_the_answer_when_nothing_can_follow) {
  const auto engine = tiny_engine({}, rows(3));
  const auto three = std::make_shared<Only>(std::set<int32_t>{3, 5, 8}, 3);
  const auto none = std::make_shared<Only>(std::set<int32_t>{3}, 0);
  const auto closing = std::make_shared<Only>(std::set<int32_t>{4});
  Request ended = constrained(closing);
  ended.end_ids = {4};
  Answer a, b, c;
  Scheduler scheduler(*engine);
  scheduler.submit(constrained(three), into(a));
  scheduler.submit(constrained(none), into(b));
  scheduler.submit(ended, into(c));
  drain(scheduler);
  EXPECT_EQ(a.ids.size(), 3u);
  EXPECT_EQ(a.end, "stop");
  EXPECT_EQ(three->applied, 3);
  EXPECT_TRUE(b.ids.empty());
  EXPECT_EQ(b.end, "stop");
  EXPECT_EQ(none->applied, 0);
  EXPECT_TRUE(c.ids.empty());
  EXPECT_EQ(c.end, "stop");
  EXPECT_TRUE(closing->accepted.empty()) << "an end id is not told";
}

TEST(Constraint, its_failures_end_its_own_row) {
  const auto engine = tiny_engine({}, rows(6));
  const auto want = solo(*engine, asked(prompt_ids(7)));
  const auto failing = [](std::string where) {
    auto only = std::make_shared<Only>(std::set<int32_t>{3, 5});
    only->fails = std::move(where);
    return constrained(only);
  };
  Answer apply, accept, finished, memory, nothing, free;
  {
    Scheduler scheduler(*engine);
    scheduler.submit(failing("apply"), into(apply));
    scheduler.submit(failing("accept"), into(accept));
    scheduler.submit(failing("finished"), into(finished));
    scheduler.submit(failing("memory"), into(memory));
    scheduler.submit(constrained(std::make_shared<Only>(std::set<int32_t>{})), into(nothing));
    scheduler.submit(asked(prompt_ids(7)), into(free));
    drain(scheduler);
  }
  EXPECT_EQ(apply.end, "apply says no");
  EXPECT_EQ(accept.end, "accept says no");
  EXPECT_EQ(finished.end, "finished says no");
  EXPECT_EQ(memory.end, "the answer's constraint could not get the memory it needs");
  EXPECT_EQ(nothing.end, "no token can be drawn: the constraint and the biases leave none");
  EXPECT_TRUE(apply.ids.empty() && accept.ids.empty() && finished.ids.empty() && nothing.ids.empty());
  EXPECT_EQ(free.ids, want.ids);
  expect_all_free(*engine);
}

TEST(Constraint, its_state_outlives_parking) {
  EngineOptions options = rows(3);
  options.pool_positions = 320;
  const auto engine = tiny_engine({}, options);
  const auto run = [&](bool crowded) {
    const auto only = std::make_shared<Only>(std::set<int32_t>{3, 5, 8, 40, 41, 200}, 80);
    Answer answer, others[2];
    Request r = constrained(only, 200);
    r.sampler = {.temperature = 1, .seed = 6};
    Scheduler scheduler(*engine, {.tokens_reserved = 1});
    if (crowded)
      for (Answer& other : others) scheduler.submit(asked(prompt_ids(60), 120), into(other));
    scheduler.submit(r, into(answer));
    drain(scheduler);
    if (crowded) {
      EXPECT_GE(scheduler.counts().parked, 1);
    }
    EXPECT_EQ(answer.ids, only->accepted);
    return answer.ids;
  };
  const Ids alone = run(false);
  EXPECT_EQ(alone.size(), 80u);
  EXPECT_EQ(run(true), alone);
}

}  // namespace
}  // namespace hearth::decode
