// memory that cannot be had ends the request that wanted it, and neither the thread nor another request.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "server/worker/call_session.h"
#include "server/worker/guarded.h"
#include "server/worker/session.h"
#include "server/worker/text_thread.h"
#include "server/worker/unsaid.h"
#include "support/tiny_model.h"

namespace hearth::server {
namespace {

// Frames as a session sends them.
class Frames {
 public:
  void take(std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; auto frame = take_frame(bytes, at);) all_.push_back(std::move(*frame));
  }
  std::vector<Frame> all() {
    const std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Frame> all_;
};

json::Value numbered(int64_t id) {
  json::Object body;
  body["id"] = id;
  body["content"] = "abc";
  return body;
}

void expect_first_refused(const std::vector<Frame>& frames) {
  ASSERT_EQ(frames.size(), 2u);
  ASSERT_EQ(frames[0].kind, FrameKind::error);
  const Event error = event_of(frames[0]);
  EXPECT_EQ(error.id, 1u);
  EXPECT_EQ(error.reason, "out_of_memory");
  EXPECT_EQ(error.text, "the server has too little memory for this request just now");
  EXPECT_EQ(frames[1].kind, FrameKind::reply);
  EXPECT_EQ(*frames[1].body.get("id"), json::Value(2));
}

TEST(OutOfMemory, ends_one_call_of_a_worker_without_an_engine) {
  Frames frames;
  int calls = 0;
  CallAnswers answers{.answer =
                          [&](FrameKind, const json::Value&, const std::atomic<bool>&) {
                            if (calls++ == 0) throw std::bad_alloc();
                            return json::Object();
                          },
                      .no_text = ""};
  CallSession session(std::move(answers), [&](std::string_view bytes) { frames.take(bytes); });
  for (const int64_t id : {1, 2}) session.call(FrameKind::tokenize, numbered(id));
  session.drain();
  expect_first_refused(frames.all());
}

WorkerModel tiny_worker(const test::TempDir& dir) {
  test::write_tiny_model({}, dir);
  const std::shared_ptr<model::Model> opened = model::Model::open(dir.path());
  WorkerModel model;
  model.name = "tiny";
  model.text = std::make_unique<model::ModelText>(*opened);
  model.engine = std::make_unique<decode::Engine>(opened, graph::make_reference_executor(1),
                                                  decode::EngineOptions{.context = 64, .memory_budget = 1'000'000'000});
  return model;
}

// Takes a session's frames; there is no memory for that the first few times.
auto short_of_memory(int failures, Frames& frames) {
  return [left = std::make_shared<std::atomic<int>>(failures), &frames](std::string_view bytes) {
    if (left->fetch_sub(1) > 0) throw std::bad_alloc();
    frames.take(bytes);
  };
}

// Also where it cannot be had for saying so, the first few times.
TEST(OutOfMemory, ends_one_call_of_a_session) {
  for (const int failures : {1, 2, 5}) {
    const test::TempDir dir;
    Frames frames;
    {
      Session session(tiny_worker(dir), short_of_memory(failures, frames));
      for (const int64_t id : {1, 2}) session.call(FrameKind::tokenize, numbered(id));
    }
    expect_first_refused(frames.all());
  }
}

// An answer whose words cannot be made ends with an error; the engine is told, and what it still says of it is nothing.
TEST(OutOfMemory, ends_an_answer_on_the_text_thread) {
  const test::TempDir dir;
  const WorkerModel model = tiny_worker(dir);
  Frames frames;
  int ended = 0, stopped = 0, failures = 2;
  const auto live = std::make_shared<LiveRequest>();
  live->id = 7;
  live->generation.stream = true;
  live->answers.resize(1);
  live->open = 1;
  {
    TextThread text(model.text->tokenizer(),
                    {.send = [&](std::string_view bytes) { frames.take(bytes); },
                     .stop =
                         [&](const LiveRequestPtr&, int64_t) {
                           if (failures-- > 0) throw std::bad_alloc();  // while the answer is given up
                           ++stopped;
                         },
                     .ended = [&](const LiveRequestPtr&) { ++ended; },
                     .blame = [](const LiveRequest&, std::string_view) -> Error { throw std::bad_alloc(); }});
    text.push({.kind = EngineOutput::Kind::admitted, .live = live});
    text.push({.kind = EngineOutput::Kind::logits, .live = live, .logits = {NAN, NAN}});
    for (int i = 0; i < 2; ++i)
      text.push({.kind = EngineOutput::Kind::done, .live = live, .reason = decode::FinishReason::length});
  }
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(stopped, 1);
  const std::vector<Frame> all = frames.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, FrameKind::admitted);
  ASSERT_EQ(all[1].kind, FrameKind::error);
  EXPECT_EQ(event_of(all[1]).id, 7u);
  EXPECT_EQ(event_of(all[1]).answer, 0);
  EXPECT_EQ(event_of(all[1]).reason, "out_of_memory");
}

// The same of one whose events cannot be sent; the other one is told whole.
TEST(OutOfMemory, ends_an_answer_that_cannot_be_written) {
  const test::TempDir dir;
  const WorkerModel model = tiny_worker(dir);
  Frames frames;
  std::vector<uint64_t> ended;
  int failures = 3;
  {
    TextThread text(model.text->tokenizer(), {.send =
                                                  [&](std::string_view bytes) {
                                                    if (!bytes.empty() && failures-- > 0) throw std::bad_alloc();
                                                    frames.take(bytes);
                                                  },
                                              .stop = [](const LiveRequestPtr&, int64_t) {},
                                              .ended = [&](const LiveRequestPtr& live) { ended.push_back(live->id); },
                                              .blame =
                                                  [](const LiveRequest&, std::string_view what) {
                                                    return Error(ErrorKind::invalid_argument, std::string(what));
                                                  }});
    for (const uint64_t id : {1, 2}) {
      const auto live = std::make_shared<LiveRequest>();
      live->id = id;
      live->answers.resize(1);
      live->open = 1;
      text.push({.kind = EngineOutput::Kind::done, .live = live, .reason = decode::FinishReason::length});
    }
  }
  EXPECT_EQ(ended, (std::vector<uint64_t>{1, 2}));
  const std::vector<Frame> all = frames.all();
  ASSERT_EQ(all.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(all[i].kind, FrameKind::finish);
    EXPECT_EQ(event_of(all[i]).id, i + 1);
  }
}

TEST(OutOfMemory, that_lasts_ends_the_process_and_not_just_the_answer) {
  int refused = 0;
  EXPECT_THROW(guarded([] { throw Error(ErrorKind::io, "x"); },
                       [&](const Error&) {
                         ++refused;
                         throw std::bad_alloc();
                       },
                       {.pause = std::chrono::milliseconds(0)}),
               std::bad_alloc);
  EXPECT_GT(refused, 10);
}

// The engine thread waits for nothing: it goes on, and tells it then.
TEST(OutOfMemory, is_told_later_on_a_thread_that_may_not_wait) {
  int tried = 0;
  std::vector<std::string> told;
  const auto tell = [&](const Error& error) {
    if (++tried <= 2) throw std::bad_alloc();
    told.emplace_back(error.what());
  };
  Unsaid unsaid(std::chrono::hours(1));
  Unsaid::Room first = Unsaid::room(tell), second = Unsaid::room(tell), none = Unsaid::room(tell);
  unsaid.guard(none, [] {});
  EXPECT_TRUE(unsaid.empty());
  unsaid.guard(first, [] { throw std::bad_alloc(); });
  EXPECT_EQ(tried, 1);
  EXPECT_FALSE(unsaid.empty());
  unsaid.guard(second, [] { throw Error(ErrorKind::io, "x"); });
  EXPECT_EQ(tried, 2) << "in their order";
  unsaid.again();
  EXPECT_TRUE(unsaid.empty());
  EXPECT_EQ(told, (std::vector<std::string>{no_memory().what(), "x"}));
}

TEST(OutOfMemory, that_lasts_ends_a_process_that_did_not_wait) {
  Unsaid unsaid(std::chrono::milliseconds(0));
  Unsaid::Room room = Unsaid::room([](const Error&) { throw std::bad_alloc(); });
  EXPECT_THROW(unsaid.guard(room, [] { throw Error(ErrorKind::io, "x"); }), std::bad_alloc);
}

TEST(OutOfMemory, ends_one_call_on_the_engine_thread) {
  for (const int failures : {1, 2, 5}) {
    const test::TempDir dir;
    Frames frames;
    Session session(tiny_worker(dir), short_of_memory(failures, frames));
    session.call(FrameKind::stats, numbered(1));
    std::vector<Frame> all;
    for (int i = 0; all.empty() && i < 2000; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      all = frames.all();
    ASSERT_EQ(all.size(), 1u) << failures;
    ASSERT_EQ(all[0].kind, FrameKind::error);
    EXPECT_EQ(event_of(all[0]).id, 1u);
    EXPECT_EQ(event_of(all[0]).reason, "out_of_memory");
  }
}

TEST(Guarded, what_cannot_be_told_is_told_without_its_reason) {
  std::vector<std::string> told;
  guarded([] { throw Error(ErrorKind::io, "\xff"); },
          [&](const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::io);
            if (told.empty()) {
              told.emplace_back(error.what());
              throw Error(ErrorKind::invalid_argument, "that is not UTF-8");
            }
            told.emplace_back(error.what());
          });
  EXPECT_EQ(told, (std::vector<std::string>{"\xff", "the request failed, and why cannot be told"}));
}

}  // namespace
}  // namespace hearth::server
