// R-19 and R-20b on a tiny model: what is cached never changes an answer, and never crosses from one key to another.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/answers.h"

namespace hearth::decode {
namespace {

constexpr int64_t kPrompt = 150;

struct Cache {
  graph::KvFormat kv = graph::KvFormat::bf16;
  int64_t window = 0;
};
const Cache kCaches[] = {
    {graph::KvFormat::bf16, 0}, {graph::KvFormat::q8, 0}, {graph::KvFormat::q4, 0}, {graph::KvFormat::bf16, 50}};

std::unique_ptr<Engine> engine_of(const Cache& cache, int64_t n) {
  EngineOptions options = rows(n);
  options.kv = cache.kv;
  return tiny_engine({.window = cache.window}, options);
}

Answer ask(Scheduler& scheduler, const Request& r) {
  Answer answer;
  scheduler.submit(r, into(answer));
  drain(scheduler);
  return answer;
}

// Another token somewhere in a prompt that is cached: what stands before it may come from the cache, and the answer is
// that of a cold run.
void check_mutations(int64_t tries) {
  Random random(19);
  int64_t cached = 0;
  for (const Cache& cache : kCaches) {
    const auto cold = engine_of(cache, 1), warm = engine_of(cache, 1);
    Scheduler scheduler(*warm);
    const Ids base = prompt_ids(kPrompt);
    ask(scheduler, asked(base, 4));
    for (int64_t i = 0; i < tries / static_cast<int64_t>(std::size(kCaches)); ++i) {
      Request r = asked(base, 4);
      const auto at = static_cast<int64_t>(random.below(kPrompt));
      int32_t& token = r.prompt[static_cast<size_t>(at)];
      token = static_cast<int32_t>((static_cast<uint64_t>(token) + 1 + random.below(255)) % 256);
      const Answer answer = ask(scheduler, r);
      ASSERT_EQ(answer.ids, solo(*cold, r).ids) << "token " << at << ", window " << cache.window;
      // Earlier mutations are cached too, but none goes on as this one does.
      ASSERT_LE(answer.cached, std::min(at, kPrompt - 1)) << "window " << cache.window;
      cached += answer.cached;
      if (i % 8 == 0) {
        ASSERT_EQ(ask(scheduler, asked(base, 4)).ids, solo(*cold, asked(base, 4)).ids);
      }
    }
  }
  EXPECT_GT(cached, tries * 10) << "nothing was shared, so nothing was shown";
}
// 1 token mutated in shared prefixes x 1,000: output equals a cold run.
TEST(SharedPrefix, a_mutated_token_gives_the_answer_of_a_cold_run) { check_mutations(32); }
TEST(SharedPrefixFull, a_mutated_token_gives_the_answer_of_a_cold_run) { check_mutations(1'000); }

// A key guesses beginnings of another one's prompt, of every length, at the same time and later: whatever it guesses is
// evaluated as if nobody had asked before, which is all that time could tell it.
void check_guesses(int64_t tries) {
  Random random(20);
  const auto engine = engine_of({}, 4), cold = engine_of({}, 1);
  Scheduler scheduler(*engine);
  const Ids secret = prompt_ids(kPrompt);
  Request own = asked(secret, 4);
  own.owner = own.space = "a";
  ask(scheduler, own);
  for (int64_t i = 0; i < tries; ++i) {
    Request guess = asked(Ids(secret.begin(), secret.begin() + 1 + static_cast<int64_t>(random.below(kPrompt))), 2);
    guess.prompt.push_back(static_cast<int32_t>(random.below(256)));
    guess.owner = guess.space = "key " + std::to_string(i);  // each try the first one of its key
    Answer beside, answer;
    const uint64_t steps = scheduler.prefixes().bytes() > 0 ? random.below(4) : 0;
    scheduler.submit(own, into(beside));
    for (uint64_t n = 0; n < steps; ++n) scheduler.step();
    scheduler.submit(guess, into(answer));
    drain(scheduler);
    ASSERT_EQ(answer.cached, 0) << "try " << i;
    ASSERT_EQ(answer.ids, solo(*cold, guess).ids);
    ASSERT_GT(beside.cached, 0) << "its own key finds it";
    scheduler.forget(guess.space);
  }
}
// two keys, guessed prefix of the other key.
TEST(SharedPrefix, a_key_finds_nothing_of_another_ones) { check_guesses(25); }
TEST(SharedPrefixFull, a_key_finds_nothing_of_another_ones) { check_guesses(1'000); }

// Greedy and drawn with a seed, of any length; some begin alike.
std::vector<Request> any_requests(int64_t n) {
  Random random(21);
  std::vector<Request> requests;
  for (int64_t i = 0; i < n; ++i) {
    Request r = asked(prompt_ids(1 + static_cast<int64_t>(random.below(120)), random.below(5)), 8);
    r.prompt.push_back(static_cast<int32_t>(random.below(256)));
    if (i % 2) r.sampler = {.temperature = 1, .top_p = 0.9, .seed = random.next()};
    if (i % 5 == 0) r.sampler.repetition_penalty = 1.2f;
    requests.push_back(std::move(r));
  }
  return requests;
}

void check_same_answers(int64_t n) {
  const test::TempDir dir;
  const PrefixDiskOptions stored{.dir = dir.path(), .model = "tiny", .positions_min = 32};
  const std::vector<Request> requests = any_requests(n);
  std::vector<Ids> alone;
  {
    const auto engine = engine_of({}, 1);
    for (const Request& r : requests) alone.push_back(solo(*engine, r).ids);
  }
  Random random(22);
  int64_t warm = 0, restored = 0;
  for (const char* when : {"among random neighbours", "again, warm", "behind a restart"}) {
    const auto engine = engine_of({}, 8);
    PrefixDisk disk(*engine, stored);
    Scheduler scheduler(*engine, {.disk = &disk});
    for (int round = 0; round < (std::string_view(when) == "again, warm" ? 2 : 1); ++round) {
      std::vector<size_t> order;
      for (size_t i = 0; i < requests.size(); ++i) order.push_back(i);
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      std::vector<Answer> answers(requests.size());
      for (const size_t i : order) {
        scheduler.submit(requests[i], into(answers[i]));
        for (uint64_t steps = random.below(6); steps > 0; --steps) scheduler.step();
      }
      drain(scheduler);
      for (size_t i = 0; i < requests.size(); ++i) {
        ASSERT_EQ(answers[i].ids, alone[i]) << when << ", request " << i;
        if (round > 0) warm += answers[i].cached > 0;
      }
    }
    disk.flush();
    restored += disk.counts().restores;
  }
  EXPECT_GT(warm, n / 2);
  EXPECT_GT(restored, 0);
}
// R-20b: alone, in a batch of 8 with random neighbours, cold, warm, behind a restart: identical ids.
TEST(SameAnswer, alone_in_company_warm_and_behind_a_restart) { check_same_answers(50); }
TEST(SameAnswerFull, alone_in_company_warm_and_behind_a_restart) { check_same_answers(500); }

}  // namespace
}  // namespace hearth::decode
