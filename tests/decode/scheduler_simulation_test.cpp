// Random histories of arrivals, cancels, holds, failures and dry pools, each from its seed (reliability section 5).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "decode/answers.h"
#include "decode/scripted_engine.h"
#include "support/scale.h"

namespace hearth::decode {
namespace {

constexpr int64_t kV = 258;

// What the request gives, without an engine.
Answer expected(const Request& r, int64_t window, int64_t context) {
  Answer answer;
  Ids exempt = r.end_ids;
  Sampler sampler(r.sampler, kV, exempt);
  Ids history = r.prompt;
  const int64_t most = std::min(r.max_tokens, context - static_cast<int64_t>(r.prompt.size()) + 1);
  std::vector<float> logits(kV);
  answer.end = "length";
  for (int64_t i = 0; i < most; ++i) {
    const auto n = static_cast<int64_t>(history.size());
    scripted_logits(std::span(history).last(static_cast<size_t>(window > 0 ? std::min(n, window) : n)), logits);
    const Sampled token = sampler.sample(logits, history, static_cast<uint64_t>(i));
    if (std::ranges::find(r.end_ids, token.id) != r.end_ids.end()) {
      answer.end = "stop";
      break;
    }
    answer.ids.push_back(token.id);
    history.push_back(token.id);
  }
  return answer;
}

struct Live {
  Request request;
  Answer answer;
  RequestId id = 0;
  int64_t order = -1;  // of admission
  bool alone = true;   // submitted by itself
  bool held = false, touched = false;
};

class History {
 public:
  History(ScriptedEngine& scripted, int64_t window, uint64_t seed)
      : random_(seed), scripted_(scripted), engine_(*scripted.engine), window_(window) {
    options_ = {.waiting_max = random_.between(2, 12),
                .prefix_bytes = random_.below(3) == 0 ? 0 : random_.between(1, 400'000),
                .tokens_reserved = random_.below(2) ? 1 : 1024};
    for (int i = 0; i < 3; ++i) stems_.push_back(prompt_ids(random_.between(1, 150), random_.next()));
  }

  void run() {
    {
      Scheduler scheduler(engine_, options_);
      for (int64_t i = random_.between(5, 60); i > 0; --i) {
        act(scheduler);
        if (::testing::Test::HasFailure()) return;
      }
      if (random_.below(4) != 0) drain_all(scheduler);
      EXPECT_LE(scheduler.counts().active, engine_.options().sequences_max);
    }
    check();
    expect_all_free(engine_);
  }

 private:
  void act(Scheduler& scheduler) {
    const auto pick = [&]() -> Live& { return *live_[random_.below(live_.size())]; };
    switch (random_.below(live_.empty() ? 2 : 10)) {
      case 0: submit(scheduler, 1); break;
      case 1: submit(scheduler, random_.between(2, 5)); break;
      case 2: {
        Live& one = pick();
        one.touched = true;
        scheduler.cancel(one.id);
        break;
      }
      case 3: {
        Live& one = pick();
        one.held = one.touched = true;
        scheduler.hold(one.id);
        break;
      }
      case 4: {
        Live& one = pick();
        one.held = false;
        scheduler.release(one.id);
        break;
      }
      case 5:
        if (random_.below(10) == 0) scripted_.executor->fail_next = true;
        break;
      default:
        for (int64_t n = random_.between(1, 20); n > 0; --n) step(scheduler);
    }
  }

  bool step(Scheduler& scheduler) {
    std::vector<size_t> held;
    for (const auto& one : live_) held.push_back(one->held ? one->answer.ids.size() : 0);
    const bool did = scheduler.step();
    for (size_t i = 0; i < live_.size(); ++i)
      if (live_[i]->held) {
        EXPECT_EQ(live_[i]->answer.ids.size(), held[i]) << "a held row was stepped";
      }
    EXPECT_LE(scheduler.counts().active, engine_.options().sequences_max);
    EXPECT_LE(scheduler.prefixes().bytes(), options_.prefix_bytes);
    return did;
  }

  void submit(Scheduler& scheduler, int64_t n) {
    Request r = asked(stems_[random_.below(3)], random_.between(0, 60));
    r.prompt.resize(random_.below(r.prompt.size()) + 1);
    if (random_.below(2)) {
      const Ids more = prompt_ids(random_.between(1, 60), random_.below(5));
      r.prompt.insert(r.prompt.end(), more.begin(), more.end());
    }
    r.owner = random_.below(2) ? "a" : "b";
    r.space = random_.below(4) ? "" : "x";
    for (int64_t i = random_.between(0, 12); i > 0; --i) r.end_ids.push_back(static_cast<int32_t>(random_.below(kV)));
    std::vector<std::unique_ptr<Live>> more;
    std::vector<Submission> list;
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0 || random_.below(2)) r.sampler = {.temperature = 1, .seed = random_.next()};
      Live& one = *more.emplace_back(std::make_unique<Live>());
      one.request = r;
      one.alone = n == 1;
      Events events = into(one.answer);
      events.admitted = [this, &one](int64_t, int64_t cached) {
        EXPECT_EQ(one.order, -1) << "admitted twice";
        one.order = admitted_++;
        one.answer.cached = cached;
      };
      list.push_back({r, std::move(events)});
    }
    const int64_t waiting = scheduler.counts().waiting;
    try {
      std::vector<RequestId> ids;
      if (n == 1) ids.push_back(scheduler.submit(list[0].request, list[0].events));
      else ids = scheduler.submit_together(std::move(list));
      for (size_t i = 0; i < ids.size(); ++i) more[i]->id = ids[i];
      std::ranges::move(more, std::back_inserter(live_));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::busy);
      EXPECT_GT(waiting + n, options_.waiting_max);
    }
  }

  // Nobody is held any more: every step evaluates something of the oldest row, so there is an end in sight.
  void drain_all(Scheduler& scheduler) {
    int64_t bound = 100;
    for (const auto& one : live_) {
      one->held = false;
      scheduler.release(one->id);
      if (one->answer.end.empty())
        bound += 3 * static_cast<int64_t>(one->request.prompt.size()) + 3 * one->request.max_tokens + 3;
    }
    while (step(scheduler)) ASSERT_GT(bound--, 0) << "it does not end";
    for (const auto& one : live_) EXPECT_NE(one->answer.end, "") << "forgotten";
    EXPECT_EQ(scheduler.counts().active + scheduler.counts().waiting + scheduler.counts().held, 0);
  }

  void check() {
    for (const auto& one : live_) {
      const std::string& end = one->answer.end;
      ASSERT_NE(end, "") << "a request has no end";  // a second end is seen by the events
      const Answer want = expected(one->request, window_, engine_.context());
      if (end == "cancelled" || end == "the device is lost") {
        ASSERT_LE(one->answer.ids.size(), want.ids.size());
        ASSERT_TRUE(std::equal(one->answer.ids.begin(), one->answer.ids.end(), want.ids.begin()));
      } else {
        ASSERT_EQ(one->answer.ids, want.ids);
        ASSERT_EQ(end, want.end);
      }
    }
    // One owner's requests start in the order in which they came.
    for (const char* owner : {"a", "b"}) {
      int64_t last = -1;
      for (const auto& one : live_) {
        if (one->request.owner != owner || !one->alone || one->touched || one->order < 0) continue;
        EXPECT_GT(one->order, last);
        last = one->order;
      }
    }
  }

  Random random_;
  ScriptedEngine& scripted_;
  Engine& engine_;
  int64_t window_;
  SchedulerOptions options_;
  std::vector<Ids> stems_;
  std::vector<std::unique_ptr<Live>> live_;
  int64_t admitted_ = 0;
};

TEST(Simulation, random_histories_end_well) {
  for (const int64_t window : {0, 50})
    for (int64_t shape = 0; shape < 8; ++shape) {
      Random random(static_cast<uint64_t>(100 * window + shape));
      const int64_t n = random.between(1, 6);
      EngineOptions options = {.context = 256,
                               .sequences_max = n,
                               .pool_positions = shape % 2 ? random.between(256, 640) : 0,
                               .prefill_chunk = random.between(5, 70),
                               .gathered_max = n};
      ScriptedEngine scripted(window, options);
      for (int64_t i = 0; i < test::scaled(60); ++i) {
        const uint64_t seed = static_cast<uint64_t>(10'000 * shape + i) + static_cast<uint64_t>(window) * 1'000'000;
        SCOPED_TRACE("window " + std::to_string(window) + ", shape " + std::to_string(shape) + ", seed " +
                     std::to_string(seed));
        History(scripted, window, seed).run();
        if (HasFailure()) return;
      }
    }
}

}  // namespace
}  // namespace hearth::decode
