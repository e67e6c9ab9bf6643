// Several answers to one prompt: each as if it were alone, and the prompt evaluated once.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/answers.h"
#include "support/outcome.h"
#include "support/scale.h"

namespace hearth::decode {
namespace {

// Greedy first, then drawn with seeds of their own.
std::vector<Request> answers_to(const Ids& prompt, size_t n, int64_t max_tokens = 20) {
  std::vector<Request> list;
  for (size_t i = 0; i < n; ++i) {
    Request r = asked(prompt, max_tokens);
    if (i > 0) r.sampler = {.temperature = 1, .seed = i};
    r.top_logprobs = 2;
    list.push_back(std::move(r));
  }
  return list;
}

std::vector<RequestId> submit(Scheduler& scheduler, const std::vector<Request>& requests,
                              std::vector<Answer>& answers) {
  std::vector<Submission> list;
  for (size_t i = 0; i < requests.size(); ++i) list.push_back({requests[i], into(answers[i])});
  return scheduler.submit_together(std::move(list));
}

void expect_as_alone(Engine& alone, const std::vector<Request>& requests, const std::vector<Answer>& answers) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer want = solo(alone, requests[i]);
    EXPECT_EQ(answers[i].ids, want.ids) << i;
    EXPECT_EQ(answers[i].logprobs, want.logprobs) << i;
    EXPECT_EQ(answers[i].end, want.end) << i;
  }
}

TEST(Together, the_prompt_is_evaluated_once_and_each_answer_is_its_own) {
  const auto engine = tiny_engine({}, rows(8));
  const auto alone = tiny_engine({}, {.context = 256, .prefill_chunk = 17});
  for (const int64_t length : {1, 63, 64, 100, 128}) {  // with and without a page that is partly filled
    for (const int64_t prefix_bytes : {0, 1'000'000}) {
      const std::vector<Request> requests = answers_to(prompt_ids(length, 40 + static_cast<uint64_t>(length)), 8);
      std::vector<Answer> answers(8);
      {
        Scheduler scheduler(*engine, {.prefix_bytes = prefix_bytes});
        submit(scheduler, requests, answers);
        int64_t steps = 0;
        while (answers[0].ids.empty()) {
          ASSERT_TRUE(scheduler.step());
          ++steps;
        }
        EXPECT_EQ(steps, (length + 31) / 32) << "chunks of one prompt";
        ASSERT_TRUE(scheduler.step());
        for (const Answer& answer : answers) EXPECT_EQ(answer.ids.size(), 2u) << "all draw at its end";
        drain(scheduler);
      }
      expect_as_alone(*alone, requests, answers);
      EXPECT_EQ(answers[0].cached, 0);
      for (size_t i = 1; i < 8; ++i) EXPECT_EQ(answers[i].cached, length);
      expect_all_free(*engine);
    }
  }
}

TEST(Together, more_answers_than_rows_start_as_rows_end) {
  const auto engine = tiny_engine({}, rows(2));
  const std::vector<Request> requests = answers_to(prompt_ids(100), 7);
  std::vector<Request> others = {asked(prompt_ids(40, 3))};
  others[0].top_logprobs = 0;
  std::vector<Answer> answers(7), other(1);
  {
    Scheduler scheduler(*engine, {.prefix_bytes = 0});
    submit(scheduler, requests, answers);
    scheduler.submit(others[0], into(other[0]));
    EXPECT_EQ(scheduler.counts().waiting, 8);
    EXPECT_EQ(scheduler.counts().submitted, 8);
    drain(scheduler);
    EXPECT_EQ(scheduler.counts().waiting, 0);
  }
  expect_as_alone(*engine, requests, answers);
  expect_as_alone(*engine, others, other);
  for (size_t i = 1; i < 7; ++i) EXPECT_EQ(answers[i].cached, 100) << i;
  expect_all_free(*engine);
}

// Whichever are cancelled, at whatever moment, the others are answered.
TEST(Together, cancelling_some_leaves_the_others) {
  const auto engine = tiny_engine({}, rows(3, 16));
  const std::vector<Request> requests = answers_to(prompt_ids(100), 5, 12);
  std::vector<Answer> want;
  for (const Request& r : requests) want.push_back(solo(*engine, r));
  for (const int64_t moment : {0, 1, 2, 5, 6, 7, 8, 9, 13, 18})
    for (const unsigned gone : {0b00001u, 0b00010u, 0b00011u, 0b01110u, 0b10101u, 0b11111u}) {
      std::vector<Answer> answers(5);
      Scheduler scheduler(*engine, {.prefix_bytes = moment % 2 ? 0 : 1'000'000});
      const std::vector<RequestId> ids = submit(scheduler, requests, answers);
      for (int64_t i = 0; i < moment; ++i) scheduler.step();
      for (size_t i = 0; i < 5; ++i)
        if (gone >> i & 1) scheduler.cancel(ids[i]);
      drain(scheduler);
      for (size_t i = 0; i < 5; ++i) {
        if (answers[i].end == "cancelled") {
          ASSERT_TRUE(gone >> i & 1);
          ASSERT_TRUE(std::equal(answers[i].ids.begin(), answers[i].ids.end(), want[i].ids.begin()));
        } else {
          ASSERT_EQ(answers[i].end, want[i].end) << moment << " " << gone << " " << i;
          ASSERT_EQ(answers[i].ids, want[i].ids) << moment << " " << gone << " " << i;
        }
      }
    }
  expect_all_free(*engine);
}

TEST(Together, a_dry_pool_parks_answers_and_changes_none) {
  EngineOptions options = rows(6);
  options.pool_positions = 320;
  const auto engine = tiny_engine({}, options);
  const auto alone = tiny_engine({}, {.context = 256});
  for (const int64_t prefix_bytes : {0, 1'000'000}) {
    const std::vector<Request> requests = answers_to(prompt_ids(60), 8, 150);
    std::vector<Answer> answers(8);
    {
      Scheduler scheduler(*engine, {.prefix_bytes = prefix_bytes, .tokens_reserved = 1});
      submit(scheduler, requests, answers);
      drain(scheduler);
      EXPECT_GE(scheduler.counts().parked, 1);
    }
    expect_as_alone(*alone, requests, answers);
    expect_all_free(*engine);
  }
}

TEST(Together, what_has_not_ended_is_cancelled_with_the_scheduler) {
  const auto engine = tiny_engine({}, rows(2, 16));
  for (int steps = 0; steps < 10; ++steps) {
    std::vector<Answer> answers(5);
    {
      Scheduler scheduler(*engine);
      submit(scheduler, answers_to(prompt_ids(80), 5, 60), answers);
      for (int i = 0; i < steps; ++i) scheduler.step();
    }
    for (const Answer& answer : answers) EXPECT_EQ(answer.end, "cancelled");
    expect_all_free(*engine);
  }
}

TEST(Together, all_or_none) {
  const auto engine = tiny_engine({}, rows(2));
  Scheduler scheduler(*engine, {.waiting_max = 4});
  const auto outcome = [&](std::vector<Request> requests) {
    std::vector<Submission> list;
    for (Request& r : requests) list.push_back({std::move(r), {}});
    return test::outcome([&] { scheduler.submit_together(std::move(list)); });
  };
  EXPECT_EQ(outcome({}), "invalid_argument: no answer is asked for");
  EXPECT_EQ(outcome({asked({1}), asked({2})}),
            "invalid_argument: answer 2 has another prompt, space, owner or adapter than the first");
  Request elsewhere = asked({1});
  elsewhere.space = "b";
  EXPECT_EQ(outcome({asked({1}), asked({1}), elsewhere}),
            "invalid_argument: answer 3 has another prompt, space, owner or adapter than the first");
  EXPECT_EQ(outcome({asked({1}), asked({1}, -1)}), "invalid_argument: max-tokens is -1, expected 0 or more");
  EXPECT_EQ(scheduler.counts().waiting, 0);
  EXPECT_EQ(outcome(answers_to({1}, 3)), "accepted");
  EXPECT_EQ(outcome(answers_to({1}, 2)), "busy: 3 requests wait already");
  EXPECT_EQ(outcome(answers_to({1}, 1)), "accepted");
  drain(scheduler);
}

}  // namespace
}  // namespace hearth::decode
