// Many requests at once give what each gives alone, and leave no page behind.
#include "decode/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "decode/answers.h"
#include "support/outcome.h"
#include "support/scale.h"

namespace hearth::decode {
namespace {

// Prompts of many lengths, some with a common beginning, greedy and drawn, short and long answers, ends.
std::vector<Request> mixed(int64_t count, uint64_t seed) {
  Random random(seed);
  const Ids stem = prompt_ids(90, 77);
  std::vector<Request> requests;
  for (int64_t i = 0; i < count; ++i) {
    Ids prompt;
    if (random.below(2)) prompt.assign(stem.begin(), stem.begin() + static_cast<int64_t>(random.below(90)));
    const Ids more = prompt_ids(static_cast<int64_t>(1 + random.below(60)), 100 + random.below(6));
    prompt.insert(prompt.end(), more.begin(), more.end());
    Request r = asked(prompt, static_cast<int64_t>(random.below(40)));
    if (random.below(2)) r.sampler = {.temperature = 1, .seed = random.next() >> 1};
    if (random.below(2)) r.sampler.repetition_penalty = 1.2;
    for (int32_t id = 0; id < 10; ++id) r.end_ids.push_back(static_cast<int32_t>(random.below(256)));
    r.owner = random.below(2) ? "a" : "b";
    r.top_logprobs = 0;
    requests.push_back(std::move(r));
  }
  return requests;
}

// Each request's answer among the others, submitted at random steps, equals the one it has alone.
void expect_as_alone(const test::TinyModel& model, EngineOptions options, SchedulerOptions with, int64_t count,
                     uint64_t seed, int64_t parked_min = 0) {
  const auto alone = tiny_engine(model, {.context = 256, .prefill_chunk = 17});
  const auto engine = tiny_engine(model, options);
  const std::vector<Request> requests = mixed(count, seed);
  std::vector<Answer> answers(requests.size());
  Random random(seed + 1);
  {
    Scheduler scheduler(*engine, with);
    for (size_t i = 0; i < requests.size(); ++i) {
      scheduler.submit(requests[i], into(answers[i]));
      for (uint64_t n = random.below(6); n > 0; --n) scheduler.step();
    }
    drain(scheduler);
    EXPECT_GE(scheduler.counts().parked, parked_min);
    EXPECT_LE(scheduler.prefixes().bytes(), with.prefix_bytes);
  }
  expect_all_free(*engine);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer want = solo(*alone, requests[i]);
    ASSERT_EQ(answers[i].ids, want.ids) << "request " << i;
    ASSERT_EQ(answers[i].end, want.end) << "request " << i;
    ASSERT_EQ(answers[i].logprobs, want.logprobs) << "request " << i;
  }
}

TEST(Scheduler, answers_among_others_are_those_alone) {
  expect_as_alone({}, rows(4), {}, test::scaled(40), 1);
  expect_as_alone({}, rows(7, 5), {.prefix_bytes = 0}, test::scaled(25), 2);
  expect_as_alone({.window = 50}, rows(4), {}, test::scaled(25), 3);
}

TEST(Scheduler, a_pool_that_runs_dry_parks_the_youngest_and_changes_no_answer) {
  EngineOptions options = rows(6);
  options.pool_positions = 320;  // five pages for six rows
  expect_as_alone({}, options, {.tokens_reserved = 1}, test::scaled(40), 4, test::scale() == 1 ? 1 : 0);
}

TEST(Scheduler, a_common_beginning_is_evaluated_once) {
  const auto engine = tiny_engine({}, rows(4));
  Answer first, second, third, elsewhere;
  Scheduler scheduler(*engine);
  const Ids prompt = prompt_ids(150);
  scheduler.submit(asked(prompt), into(first));
  drain(scheduler);
  EXPECT_EQ(first.cached, 0);
  scheduler.submit(asked(prompt), into(second));
  drain(scheduler);
  EXPECT_EQ(second.cached, 149) << "the last id is always evaluated";
  EXPECT_EQ(first.ids, second.ids);
  Ids turn = prompt;
  turn.insert(turn.end(), first.ids.begin(), first.ids.end());
  turn.push_back(3);
  Request next = asked(turn);
  scheduler.submit(next, into(third));
  drain(scheduler);
  EXPECT_EQ(third.cached, 150 + 19) << "the last id of an answer was drawn, not evaluated";
  next.space = "another";
  scheduler.submit(next, into(elsewhere));
  drain(scheduler);
  EXPECT_EQ(elsewhere.cached, 0);
  EXPECT_EQ(elsewhere.ids, third.ids);
}

TEST(Scheduler, whole_pages_of_a_prompt_serve_others_while_its_answer_runs) {
  const auto engine = tiny_engine({}, rows(2));
  Answer first, second;
  Scheduler scheduler(*engine);
  scheduler.submit(asked(prompt_ids(150), 60), into(first));
  while (first.ids.empty()) ASSERT_TRUE(scheduler.step());
  scheduler.submit(asked(prompt_ids(150), 5), into(second));
  drain(scheduler);
  EXPECT_EQ(second.cached, 128);
  EXPECT_TRUE(std::equal(second.ids.begin(), second.ids.end(), first.ids.begin()));
}

TEST(Scheduler, no_row_waits_for_more_than_a_chunk_of_another_prompt) {
  const auto engine = tiny_engine({}, rows(2, 16));
  Answer decoding, prefilling;
  Scheduler scheduler(*engine);
  scheduler.submit(asked(prompt_ids(5), 60), into(decoding));
  while (decoding.ids.empty()) ASSERT_TRUE(scheduler.step());
  scheduler.submit(asked(prompt_ids(150, 9), 1), into(prefilling));
  for (size_t before = decoding.ids.size(); prefilling.end.empty(); ++before) {
    ASSERT_EQ(decoding.ids.size(), before) << "a token each step";
    ASSERT_TRUE(scheduler.step());
  }
}

TEST(Scheduler, cancelling_at_any_moment_frees_the_row_and_disturbs_nobody) {
  const test::TinyModel model;
  const auto alone = tiny_engine(model, {.context = 256});
  const auto engine = tiny_engine(model, rows(4, 16));
  Random random(5);
  for (int64_t round = 0; round < test::scaled(10); ++round) {
    std::vector<Request> requests = mixed(12, 50 + static_cast<uint64_t>(round));
    std::vector<Answer> answers(requests.size());
    std::map<RequestId, bool> cancelled;
    std::vector<RequestId> names;
    Scheduler scheduler(*engine);
    for (size_t i = 0; i < requests.size(); ++i) {
      names.push_back(scheduler.submit(requests[i], into(answers[i])));
      cancelled[names[i]] = false;
    }
    do {
      if (random.below(4) == 0) {
        const RequestId id = names[random.below(names.size())];
        scheduler.cancel(id);
        cancelled[id] = true;
      }
    } while (scheduler.step());
    scheduler.cancel(12345);  // nobody
    EXPECT_FALSE(scheduler.step());
    EXPECT_EQ(scheduler.counts().active, 0);
    for (size_t i = 0; i < requests.size(); ++i) {
      const Answer want = solo(*alone, requests[i]);
      ASSERT_NE(answers[i].end, "");
      if (answers[i].end == "cancelled") {
        ASSERT_TRUE(cancelled[names[i]]);
        ASSERT_TRUE(std::equal(answers[i].ids.begin(), answers[i].ids.end(), want.ids.begin()));
      } else {
        ASSERT_EQ(answers[i].ids, want.ids);
      }
    }
  }
  expect_all_free(*engine);
}

TEST(Scheduler, what_has_not_ended_is_cancelled_with_it) {
  const auto engine = tiny_engine({}, rows(1));
  Answer runs, waits;
  {
    Scheduler scheduler(*engine);
    scheduler.submit(asked(prompt_ids(9), 60), into(runs));
    scheduler.submit(asked(prompt_ids(9), 60), into(waits));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(scheduler.step());
    EXPECT_EQ(scheduler.counts().active, 1);
    EXPECT_EQ(scheduler.counts().waiting, 1);
  }
  EXPECT_EQ(runs.end, "cancelled");
  EXPECT_EQ(waits.end, "cancelled");
  EXPECT_EQ(waits.ids.size(), 0u);
  expect_all_free(*engine);
}

TEST(Scheduler, refuses_what_cannot_be_before_it_waits) {
  const auto engine = tiny_engine({}, rows(1));
  Scheduler scheduler(*engine, {.waiting_max = 2});
  const auto outcome = [&](Request r) { return test::outcome([&] { scheduler.submit(std::move(r), {}); }); };
  EXPECT_EQ(outcome(asked({})), "invalid_argument: the prompt is empty");
  EXPECT_EQ(outcome(asked({1, 258})), "invalid_argument: token id 258 is outside the vocabulary of 258");
  EXPECT_EQ(outcome(asked(prompt_ids(257))), "out_of_memory: the prompt has 257 tokens, the context holds 256");
  EXPECT_EQ(outcome(asked({1}, -1)), "invalid_argument: max-tokens is -1, expected 0 or more");
  Request hot = asked({1});
  hot.sampler.temperature = -1;
  EXPECT_EQ(outcome(hot).substr(0, 17), "invalid_argument:");
  Request top = asked({1});
  top.top_logprobs = 21;
  EXPECT_EQ(outcome(top), "invalid_argument: top_logprobs is 21, expected 0 to 20");
  top.top_logprobs = -1;
  EXPECT_EQ(outcome(top), "invalid_argument: top_logprobs is -1, expected 0 to 20");
  EXPECT_EQ(scheduler.counts().waiting, 0);
  for (int i = 0; i < 2; ++i) scheduler.submit(asked({1}), {});
  EXPECT_EQ(outcome(asked({1})), "busy: 2 requests wait already");
  drain(scheduler);
  EXPECT_EQ(outcome(asked({1})), "accepted");
  const auto narrow = tiny_engine({}, {.context = 64, .sequences_max = 4});
  EXPECT_EQ(test::outcome([&] { Scheduler(*narrow, {}); }),
            "invalid_argument: 4 rows decode together, logits are gathered for 1");
}

TEST(Scheduler, answers_end_at_the_context_and_at_no_tokens) {
  const auto engine = tiny_engine({}, rows(2));
  Answer full, none;
  Scheduler scheduler(*engine);
  scheduler.submit(asked(prompt_ids(250), 100), into(full));
  scheduler.submit(asked(prompt_ids(5), 0), into(none));
  drain(scheduler);
  EXPECT_EQ(full.ids.size(), 7u);  // the last one need not be evaluated
  EXPECT_EQ(full.end, "length");
  EXPECT_EQ(none.end, "length");
  EXPECT_TRUE(none.ids.empty());
}

TEST(Scheduler, a_row_for_which_nothing_can_be_drawn_fails_alone) {
  const auto engine = tiny_engine({}, rows(2));
  Answer good, bad;
  Scheduler scheduler(*engine);
  scheduler.submit(asked(prompt_ids(5), 10), into(good));
  Request nothing = asked(prompt_ids(6), 10);
  for (int32_t id = 0; id < 258; ++id) nothing.sampler.logit_bias.push_back({id, -INFINITY});
  scheduler.submit(nothing, into(bad));
  drain(scheduler);
  EXPECT_EQ(good.end, "length");
  EXPECT_EQ(bad.end, "no token can be drawn: the biases leave none");
  EXPECT_TRUE(bad.ids.empty());
}

// Figures of a row among others, greedy and drawn, are those that it has alone.
TEST(Scheduler, log_probabilities_do_not_depend_on_company) {
  const auto engine = tiny_engine({}, rows(4));
  const auto run = [&](size_t first, size_t count) {
    std::vector<Answer> answers(count);
    Scheduler scheduler(*engine, {.prefix_bytes = 0});
    for (size_t i = 0; i < count; ++i) {
      Request r = asked(prompt_ids(5 + static_cast<int64_t>(first + i), first + i), 12);
      if ((first + i) % 2) r.sampler = {.temperature = 0.8, .top_p = 0.9, .seed = first + i};
      r.top_logprobs = static_cast<int64_t>(first + i) * 5;
      scheduler.submit(r, into(answers[i]));
    }
    drain(scheduler);
    return answers;
  };
  const std::vector<Answer> together = run(0, 4);
  for (size_t i = 0; i < 4; ++i) {
    const Answer alone = std::move(run(i, 1)[0]);
    EXPECT_EQ(together[i].ids, alone.ids);
    EXPECT_EQ(together[i].logprobs, alone.logprobs);
    EXPECT_EQ(together[i].tops, alone.tops);
    for (size_t t = 0; t < alone.ids.size(); ++t) {
      const Top& top = alone.tops[t];
      ASSERT_EQ(top.size(), 5 * i);
      EXPECT_TRUE(std::ranges::is_sorted(top, [](const auto& a, const auto& b) { return a.second > b.second; }));
      if (i == 2) {
        EXPECT_EQ(top[0], std::pair(alone.ids[t], alone.logprobs[t])) << "greedy takes the first";
      }
      if (const auto own = std::ranges::find(top, alone.ids[t], &Top::value_type::first); own != top.end()) {
        EXPECT_EQ(own->second, alone.logprobs[t]);
      }
    }
  }
}

}  // namespace
}  // namespace hearth::decode
