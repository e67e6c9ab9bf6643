// Rows whose readers are slow: they stand still, give way, and go on to the same answer.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/answers.h"
#include "support/scale.h"

namespace hearth::decode {
namespace {

TEST(Hold, stands_still_and_goes_on_with_the_same_answer) {
  const auto engine = tiny_engine({}, rows(2, 16));
  Request r = asked(prompt_ids(70), 30);
  r.sampler = {.temperature = 1, .seed = 3};
  const Answer want = solo(*engine, r);
  for (int moment = 0; moment < 12; ++moment) {  // waiting, in the middle of the prompt, at its end, decoding
    Answer answer, other;
    Scheduler scheduler(*engine, {.prefix_bytes = 0});
    const RequestId id = scheduler.submit(r, into(answer));
    for (int i = 0; i < moment; ++i) ASSERT_TRUE(scheduler.step());
    scheduler.hold(id);
    scheduler.hold(id);
    EXPECT_EQ(scheduler.counts().held, 1);
    EXPECT_EQ(scheduler.counts().active, 0);
    const size_t before = answer.ids.size();
    EXPECT_FALSE(scheduler.step()) << "nothing else to do";
    scheduler.submit(asked(prompt_ids(20), 5), into(other));
    drain(scheduler);
    EXPECT_EQ(other.end, "length") << "others go on";
    EXPECT_EQ(answer.ids.size(), before);
    scheduler.release(id);
    drain(scheduler);
    EXPECT_EQ(answer.ids, want.ids) << moment;
    EXPECT_EQ(answer.end, want.end);
    EXPECT_EQ(scheduler.counts().parked, 0) << "its pages stayed";
    scheduler.hold(id);  // ended: nothing
    scheduler.release(12345);
    EXPECT_EQ(scheduler.counts().held, 0);
  }
  expect_all_free(*engine);
}

TEST(Hold, leaves_its_place_in_the_batch_and_comes_back_first) {
  const auto engine = tiny_engine({}, rows(1));
  Answer slow, second, third;
  Scheduler scheduler(*engine);
  const RequestId id = scheduler.submit(asked(prompt_ids(10), 20), into(slow));
  while (slow.ids.empty()) scheduler.step();
  scheduler.hold(id);
  scheduler.submit(asked(prompt_ids(11), 10), into(second));
  scheduler.submit(asked(prompt_ids(12), 10), into(third));
  while (second.ids.size() < 5) ASSERT_TRUE(scheduler.step());
  scheduler.release(id);
  EXPECT_EQ(scheduler.counts().held, 1) << "there is one place, and it is taken";
  while (slow.end.empty()) ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(second.end, "length");
  EXPECT_TRUE(third.ids.empty());
  drain(scheduler);
  EXPECT_EQ(third.end, "length");
  EXPECT_EQ(slow.ids, solo(*engine, asked(prompt_ids(10), 20)).ids);
}

TEST(Hold, gives_its_pages_when_the_pool_is_dry) {
  EngineOptions options = rows(2);
  options.pool_positions = 256;
  const auto engine = tiny_engine({}, options);
  Request r = asked(prompt_ids(100), 40);
  const Answer want = solo(*engine, r);
  for (const int64_t prefix_bytes : {0, 1'000'000}) {
    Answer slow, large;
    Scheduler scheduler(*engine, {.prefix_bytes = prefix_bytes});
    const RequestId id = scheduler.submit(r, into(slow));
    while (slow.ids.size() < 10) scheduler.step();
    scheduler.hold(id);
    scheduler.submit(asked(prompt_ids(200, 8), 40), into(large));
    drain(scheduler);
    EXPECT_EQ(large.end, "length");
    EXPECT_EQ(scheduler.counts().parked, 1);
    EXPECT_EQ(scheduler.counts().held, 1);
    scheduler.release(id);
    drain(scheduler);
    EXPECT_EQ(slow.ids, want.ids);
  }
  expect_all_free(*engine);
}

TEST(Hold, cancel_ends_a_held_one) {
  const auto engine = tiny_engine({}, rows(2));
  Answer slow, waits;
  Scheduler scheduler(*engine, {.prefix_bytes = 0});
  const RequestId id = scheduler.submit(asked(prompt_ids(10), 20), into(slow));
  while (slow.ids.size() < 3) scheduler.step();
  const RequestId other = scheduler.submit(asked(prompt_ids(10), 20), into(waits));
  scheduler.hold(id);
  scheduler.hold(other);
  scheduler.cancel(id);
  scheduler.cancel(other);
  EXPECT_FALSE(scheduler.step());
  EXPECT_EQ(slow.end, "cancelled");
  EXPECT_EQ(waits.end, "cancelled");
  EXPECT_EQ(scheduler.counts().held, 0);
  expect_all_free(*engine);
}

// Held before the prompt is evaluated, the first of several answers leaves that to the next; all held, to nobody.
TEST(Hold, answers_to_one_prompt_do_not_wait_for_a_slow_one) {
  const auto engine = tiny_engine({}, rows(4, 16));
  const Request r = asked(prompt_ids(80), 10);
  const Answer want = solo(*engine, r);
  for (int moment = 0; moment < 8; ++moment)
    for (const int slow : {1, 3, 4}) {
      std::vector<Answer> answers(4);
      std::vector<Submission> list;
      for (Answer& answer : answers) list.push_back({r, into(answer)});
      Scheduler scheduler(*engine, {.prefix_bytes = moment % 2 ? 0 : 1'000'000});
      const std::vector<RequestId> ids = scheduler.submit_together(std::move(list));
      for (int i = 0; i < moment; ++i) scheduler.step();
      for (int i = 0; i < slow; ++i) scheduler.hold(ids[static_cast<size_t>(moment % 4 < 2 ? i : slow - 1 - i)]);
      drain(scheduler);
      for (int i = 0; i < 4; ++i) EXPECT_EQ(answers[static_cast<size_t>(i)].end, i < slow ? "" : "length") << moment;
      for (int i = slow; i-- > 0;) {
        scheduler.release(ids[static_cast<size_t>(i)]);
        drain(scheduler);
        EXPECT_EQ(answers[static_cast<size_t>(i)].end, "length") << moment;
      }
      for (const Answer& answer : answers) EXPECT_EQ(answer.ids, want.ids);
    }
  expect_all_free(*engine);
}

}  // namespace
}  // namespace hearth::decode
