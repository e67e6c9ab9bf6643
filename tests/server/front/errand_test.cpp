// What a dead worker never read goes to the next one, once; and nothing is kept longer than that may happen.
#include "server/front/errand.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/queue.h"
#include "server/front/links.h"
#include "server/front/scripted_models.h"

namespace hearth::server {
namespace {

class ErrandTest : public ScriptedModels {
 protected:
  struct Asked {
    std::shared_ptr<Errand> errand;
    std::weak_ptr<int> kept;  // alive as long as the request may be sent again
    std::atomic<int> sent{0};
    std::shared_ptr<Queue<Event>> events = std::make_shared<Queue<Event>>();
  };

  std::shared_ptr<WorkerLink> worker(const std::string& name) { return start_worker(links_, name); }

  std::unique_ptr<Asked> ask() {
    auto asked = std::make_unique<Asked>();
    auto payload = std::make_shared<int>();
    asked->kept = payload;
    asked->errand = Errand::make([payload = std::move(payload), events = asked->events, &sent = asked->sent](
                                     WorkerLink& worker, const std::shared_ptr<Errand>& errand) {
      ++sent;
      return worker.submit({}, [events](const Event& event) { events->push(event); }, errand->taken());
    });
    return asked;
  }

  // Ends the worker before it has read what it was given.
  Event give_and_kill(Asked& asked, const std::shared_ptr<WorkerLink>& worker) {
    ::kill(worker->pid(), SIGSTOP);
    asked.errand->give(worker);
    ::kill(worker->pid(), SIGKILL);
    return next_event(asked);
  }

  static Event next_event(Asked& asked) {
    std::vector<Event> events;
    asked.events->take_within(30s, events);
    if (events.size() != 1) throw std::runtime_error("one event was awaited");
    return events[0];
  }

  void TearDown() override { links_.settle(5s); }

  Links links_;
};

TEST_F(ErrandTest, what_was_never_read_goes_again_once) {
  write("a", "");
  auto asked = ask();
  const Event event = give_and_kill(*asked, worker("a"));
  ASSERT_TRUE(event.untaken);
  EXPECT_TRUE(asked->errand->goes_again(event));
  EXPECT_FALSE(asked->kept.expired());
  asked->errand->give(worker("a"));
  EXPECT_EQ(asked->sent, 2);
  EXPECT_TRUE(comes([&] { return asked->kept.expired(); })) << "the second one has read it";
  EXPECT_FALSE(asked->errand->goes_again(event));
}

TEST_F(ErrandTest, what_ends_two_workers_unread_is_told) {
  write("a", "");
  auto asked = ask();
  Event event = give_and_kill(*asked, worker("a"));
  EXPECT_TRUE(asked->errand->goes_again(event));
  const Event second = give_and_kill(*asked, worker("a"));
  EXPECT_EQ(asked->sent, 2);
  EXPECT_TRUE(second.untaken);
  EXPECT_FALSE(asked->errand->goes_again(second));
}

TEST_F(ErrandTest, what_was_read_is_kept_no_longer) {
  write("a", "answer_ms 60000");
  auto asked = ask();
  const auto link = worker("a");
  asked->errand->give(link);
  EXPECT_TRUE(comes([&] { return asked->kept.expired(); }));
  link->kill();
  const Event event = next_event(*asked);
  EXPECT_EQ(event.code, "worker_lost");
  EXPECT_FALSE(asked->errand->goes_again(event));
}

TEST_F(ErrandTest, its_end_lets_go_of_everything) {
  write("a", "");
  for (const bool is_cancelled : {false, true}) {
    auto asked = ask();
    std::shared_ptr<WorkerLink> link = worker("a");
    const std::weak_ptr<WorkerLink> weak = link;
    const Event event = give_and_kill(*asked, link);
    link.reset();
    is_cancelled ? asked->errand->cancel() : asked->errand->end();
    EXPECT_TRUE(asked->kept.expired());
    EXPECT_TRUE(comes([&] { return weak.expired(); }));
    EXPECT_FALSE(asked->errand->goes_again(event));
    asked->errand->give(worker("a"));
    EXPECT_EQ(asked->sent, 1);
    EXPECT_FALSE(asked->errand->hold());
  }
}

TEST_F(ErrandTest, a_slow_reader_is_told_of_once) {
  auto asked = ask();
  EXPECT_TRUE(asked->errand->hold());
  EXPECT_FALSE(asked->errand->hold());
  asked->errand->release();
  EXPECT_TRUE(asked->errand->hold());
}

}  // namespace
}  // namespace hearth::server
