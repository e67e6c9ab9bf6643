// R-05 in the front: memory that cannot be had for one request ends that one, and nothing of it is left behind.
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <utility>

#include "server/front/links.h"
#include "server/front/scripted_models.h"
#include "support/allocation_hook.h"

namespace hearth::server {
namespace {

class ShortOfMemory : public ScriptedModels {
 protected:
  // Whose callback finds no memory.
  std::future<Refusal> acquire_in_vain(const std::string& id, Models::Wanted wanted = Models::Wanted::model) {
    auto promise = std::make_shared<std::promise<Refusal>>();
    models_->acquire(
        id, [](const std::shared_ptr<WorkerLink>&, const json::Object&) { throw std::bad_alloc(); },
        [promise](const Refusal& refusal) { promise->set_value(refusal); }, wanted);
    return promise->get_future();
  }
};

Generation long_generation() {
  Generation g;
  g.messages = *json::parse(R"([{"role": "user", "content": "a text that is long enough for the heap"}])", "m").array();
  g.stops = {"a stop string that is long enough for the heap"};
  return g;
}

// Calls `send` with every allocation failing in turn, until it goes through. It tells of an error, or that it was sent.
template <class Send>
void expect_refused_until_sent(const WorkerLink& link, const Send& send) {
  size_t refused = 0;
  for (size_t nth = 1;; ++nth) {
    const std::optional<Event> error = send(nth);
    if (!error) break;
    ASSERT_EQ(error->reason, "out_of_memory") << nth << ": " << error->text;
    ASSERT_EQ(link.open_requests(), 0) << nth;
    ++refused;
  }
  EXPECT_GT(refused, 5u);
}

TEST_F(ShortOfMemory, a_request_that_cannot_be_sent_is_refused_and_not_open) {
  write("a", "");
  Links links;
  {
    const auto link = start_worker(links, "a");
    auto sent = std::make_shared<std::promise<void>>();
    expect_refused_until_sent(*link, [&](size_t nth) {
      Generation generation = long_generation();
      auto refused = std::make_shared<std::optional<Event>>();
      WorkerLink::Sink sink = [refused, sent](const Event& event) {
        if (event.kind == Event::Kind::error) *refused = event;
        if (event.kind == Event::Kind::finish) sent->set_value();
      };
      WorkerLink::Taken taken = [] {};
      const test::AllocationWatch watch(nth);
      link->submit(std::move(generation), std::move(sink), std::move(taken));
      return std::move(*refused);
    });
    get(sent->get_future());
  }
  links.settle(5s);
}

TEST_F(ShortOfMemory, a_call_that_cannot_be_sent_is_refused_and_not_open) {
  write("a", "");
  Links links;
  {
    const auto link = start_worker(links, "a");
    auto sent = std::make_shared<std::promise<void>>();
    expect_refused_until_sent(*link, [&](size_t nth) {
      json::Object body;
      body["content"] = "a text that is long enough for the heap";
      auto refused = std::make_shared<std::optional<Event>>();
      WorkerLink::Reply reply = [refused, sent](const Event* error, const json::Value&) {
        if (error) *refused = *error;
        else sent->set_value();
      };
      const test::AllocationWatch watch(nth);
      link->call(FrameKind::tokenize, std::move(body), std::move(reply));
      return std::move(*refused);
    });
    get(sent->get_future());
  }
  links.settle(5s);
}

// Or the model would be in use for good: never unloaded, and never making room.
TEST_F(ShortOfMemory, a_model_is_not_held_by_a_request_that_failed) {
  write("a", "");
  start({"a"});
  serve("a");
  EXPECT_EQ(get(acquire_in_vain("a")).kind, ErrorKind::out_of_memory);
  models_->unload("a");
  EXPECT_TRUE(comes([&] { return is("a", ModelState::absent); }));
}

TEST_F(ShortOfMemory, who_waits_for_a_load_is_not_concerned_by_another_one_that_fails) {
  write("a", "load_ms 200");
  start({"a"});
  auto before = ask("a");
  auto failing = acquire_in_vain("a");
  auto behind = ask("a");
  EXPECT_EQ(get(std::move(before)).kind, Event::Kind::finish);
  EXPECT_EQ(get(std::move(failing)).kind, ErrorKind::out_of_memory);
  EXPECT_EQ(get(std::move(behind)).kind, Event::Kind::finish);
  models_->unload("a");
  EXPECT_TRUE(comes([&] { return is("a", ModelState::absent); }));
}

TEST_F(ShortOfMemory, a_text_worker_is_not_held_by_a_request_that_failed) {
  write("a", "");
  start({"a"}, 1000, [](ModelsOptions& o) { o.text_idle = 100ms; });
  for (int i = 0; i < 2; ++i) {  // one that waits for it, and one that finds it ready
    EXPECT_EQ(get(acquire_in_vain("a", Models::Wanted::text)).kind, ErrorKind::out_of_memory);
    EXPECT_EQ(get(ask_text("a")), "text worker");
  }
  EXPECT_EQ(get(acquire_in_vain("a", Models::Wanted::text)).kind, ErrorKind::out_of_memory);
  std::shared_ptr<WorkerLink> link;
  EXPECT_TRUE(get(acquire("a", &link, Models::Wanted::text)).ready);
  EXPECT_TRUE(comes([&] { return link->is_lost(); })) << "it is idle and does not go";
}

TEST_F(ShortOfMemory, a_model_that_could_not_be_asked_for_is_loaded_for_the_next_one) {
  const std::string id = "a-model-with-a-name-that-is-long-enough-for-the-heap";
  write(id, "");
  start({id});
  size_t refused = 0;
  for (const Models::Wanted wanted : {Models::Wanted::text, Models::Wanted::model})
    for (size_t nth = 1;; ++nth) {
      std::promise<Outcome> promise;
      Models::Ready ready = [&](const std::shared_ptr<WorkerLink>&, const json::Object&) {
        promise.set_value({.ready = true, .refusal = {}});
      };
      std::function<void(const Refusal&)> refuse = [&](const Refusal& refusal) {
        promise.set_value({.ready = false, .refusal = refusal});
      };
      {
        const test::AllocationWatch watch(nth);
        models_->acquire(id, std::move(ready), std::move(refuse), wanted);
      }
      const Outcome outcome = get(promise.get_future());
      if (outcome.ready) break;
      ASSERT_EQ(outcome.refusal.kind, ErrorKind::out_of_memory) << nth;
      ++refused;
    }
  EXPECT_GT(refused, 2u);
  serve(id);
}

}  // namespace
}  // namespace hearth::server
