// Which models are loaded, with workers that follow a script in place of a model (spec server 2.2, cases 18, 20, 21).
#include "server/front/models.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "server/front/scripted_models.h"

namespace hearth::server {
namespace {

class ModelsTest : public ScriptedModels {};

TEST_F(ModelsTest, one_load_serves_all_who_wait) {
  write("a", "load_ms 200");
  start({"a"});
  std::vector<std::future<Event>> waiting;
  for (int i = 0; i < 16; ++i) waiting.push_back(ask("a"));
  for (auto& one : waiting) EXPECT_EQ(get(std::move(one)).kind, Event::Kind::finish);
  EXPECT_EQ(count("load a"), 1);
  EXPECT_EQ(count("answer a"), 16);
}

TEST_F(ModelsTest, loads_come_one_after_the_other) {
  write("a", "load_ms 100");
  write("b", "load_ms 100");
  write("c", "load_ms 100");
  start({"a", "b", "c"});
  std::vector<std::future<Outcome>> waiting;
  for (const char* id : {"a", "b", "c"}) waiting.push_back(acquire(id));
  for (auto& one : waiting) EXPECT_TRUE(get(std::move(one)).ready);
  EXPECT_TRUE(comes([&] { return events().size() == 6; }));
  const auto all = events();
  for (size_t i = 0; i < all.size(); i += 2) EXPECT_EQ("loaded" + all[i].substr(4), all[i + 1]) << i;
}

TEST_F(ModelsTest, the_one_used_longest_ago_makes_room) {
  for (const char* id : {"a", "b", "c"}) write(id, "bytes 400");
  start({"a", "b", "c"});
  serve("a");
  serve("b");
  serve("a");
  std::this_thread::sleep_for(2100ms);  // neither is fresh
  serve("c");
  EXPECT_TRUE(is("a", ModelState::ready)) << "used after b";
  EXPECT_TRUE(is("b", ModelState::absent));
  EXPECT_TRUE(is("c", ModelState::ready));
}

TEST_F(ModelsTest, a_fresh_one_serves_two_seconds_before_it_goes) {
  write("a", "bytes 600");
  write("b", "bytes 600");
  start({"a", "b"});
  serve("a");
  const auto begin = Clock::now();
  serve("b");
  EXPECT_GE(Clock::now() - begin, 1800ms);
}

TEST_F(ModelsTest, a_busy_one_is_never_pushed_out) {
  write("a", "bytes 600\nanswer_ms 4000");
  write("b", "bytes 600");
  start({"a", "b"});
  auto long_one = ask("a");
  ASSERT_TRUE(comes([&] { return view("a").open_requests == 1; }));
  auto other = ask("b");
  EXPECT_EQ(get(std::move(long_one)).kind, Event::Kind::finish) << "it was cut";
  EXPECT_EQ(get(std::move(other)).kind, Event::Kind::finish);
  const auto all = events();
  EXPECT_LT(std::find(all.begin(), all.end(), "answer a"), std::find(all.begin(), all.end(), "loaded b"));
}

// Each client asks again as soon as it is answered, two at a time for each model, so that neither is ever idle alone.
TEST_F(ModelsTest, clients_that_alternate_all_progress) {
  write("a", "bytes 600\nanswer_ms 20");
  write("b", "bytes 600\nanswer_ms 20");
  start({"a", "b"});
  std::atomic<bool> over{false};
  std::map<std::string, std::atomic<int>> answers;
  answers["a"] = answers["b"] = 0;
  std::vector<std::thread> clients;
  for (const char* id : {"a", "a", "a", "b", "b", "b"})
    clients.emplace_back([&, id] {
      while (!over) {
        const Event event = get(ask(id));
        if (event.kind == Event::Kind::finish) ++answers[id];
        else ADD_FAILURE() << event.text;
      }
    });
  std::this_thread::sleep_for(9s);
  const int64_t loads = count("loaded a") + count("loaded b");
  over = true;
  for (auto& client : clients) client.join();
  EXPECT_GT(answers["a"], 10);
  EXPECT_GT(answers["b"], 10);
  EXPECT_GE(loads, 3) << "both had turns";
  EXPECT_LE(loads, 6) << "each has 2 s";
}

TEST_F(ModelsTest, a_view_tells_who_waits_and_when_the_model_goes) {
  write("a", "load_ms 500");
  start({"a"}, 1000, [](ModelsOptions& o) { o.ttl = 60s; });
  auto waiting = ask("a");
  ASSERT_TRUE(comes([&] { return view("a").activity.waiting == 1; }));
  EXPECT_FALSE(view("a").unload_in) << "it is not loaded";
  EXPECT_EQ(get(std::move(waiting)).kind, Event::Kind::finish);
  ASSERT_TRUE(comes([&] { return view("a").activity.waiting == 0; }));
  const auto left = view("a").unload_in;
  ASSERT_TRUE(left);
  EXPECT_GT(*left, 0s);
  EXPECT_LE(*left, 60s);
  models_->keep_alive("a", std::nullopt);
  EXPECT_FALSE(view("a").unload_in);
  models_->keep_alive("a", 30min);
  models_->pin("a", true);
  EXPECT_FALSE(view("a").unload_in);
  models_->pin("a", false);
  EXPECT_GT(*view("a").unload_in, 29min);
}

TEST_F(ModelsTest, what_is_pinned_stays) {
  write("a", "bytes 600");
  write("b", "bytes 600");
  start({"a", "b"}, 1000, [&](ModelsOptions& o) {
    o.default_model = path("a");
    o.allowed = {path("b")};
    o.ttl = 50ms;
  });
  serve("a");
  const Event refused = get(ask("b"));
  EXPECT_EQ(refused.text, "b needs 1 MB of memory and could have 1 MB: pinned models hold 1 MB of 1 MB");
  EXPECT_TRUE(is("a", ModelState::ready));
  EXPECT_TRUE(is("b", ModelState::absent));
  models_->pin("a", false);
  serve("b");
}

TEST_F(ModelsTest, what_can_never_fit_is_refused_and_nobody_goes) {
  write("a", "bytes 300");
  write("b", "bytes 300");
  write("large", "bytes 1001");
  start({"a", "b", "large"});
  serve("a");
  serve("b");
  std::this_thread::sleep_for(2100ms);  // neither is fresh: both could go
  const Outcome outcome = get(acquire("large"));
  EXPECT_FALSE(outcome.ready);
  EXPECT_EQ(outcome.refusal.kind, ErrorKind::out_of_memory);
  EXPECT_EQ(outcome.refusal.needed_bytes, 1001);
  EXPECT_EQ(outcome.refusal.usable_bytes, 1000);
  EXPECT_TRUE(is("a", ModelState::ready) && is("b", ModelState::ready));
  EXPECT_EQ(count("load large"), 1) << "it was not tried again";
}

TEST_F(ModelsTest, what_just_fits_alone_makes_all_others_go) {
  write("a", "bytes 300");
  write("b", "bytes 300");
  write("large", "bytes 1000");
  start({"a", "b", "large"});
  serve("a");
  serve("b");
  serve("large");
  EXPECT_TRUE(is("a", ModelState::absent) && is("b", ModelState::absent));
}

TEST_F(ModelsTest, pinned_ones_count_as_what_never_goes) {
  write("a", "bytes 500");
  write("b", "bytes 200");
  write("large", "bytes 600");
  start({"a", "b", "large"});
  serve("a");
  serve("b");
  models_->pin("a", true);
  std::this_thread::sleep_for(2100ms);
  const Outcome outcome = get(acquire("large"));
  EXPECT_EQ(outcome.refusal.needed_bytes, 600);
  EXPECT_EQ(outcome.refusal.usable_bytes, 500);
  EXPECT_TRUE(is("b", ModelState::ready)) << "it went for nothing";
  models_->pin("a", false);
  serve("large");
}

TEST_F(ModelsTest, a_refusal_without_numbers_is_tried_again_with_more_room) {
  write("a", "bytes 600");
  write("b", "bytes 600\nvague");
  start({"a", "b"});
  serve("a");
  serve("b");
  EXPECT_TRUE(is("a", ModelState::absent));
}

TEST_F(ModelsTest, words_of_a_model_that_is_not_loaded_need_no_load) {
  write("a", "bytes 600");
  write("b", "bytes 600");
  start({"a", "b"});
  serve("a");
  EXPECT_EQ(get(ask_text("a")), "model") << "a loaded one answers itself";
  EXPECT_EQ(get(ask_text("b")), "text worker");
  EXPECT_EQ(get(ask_text("b")), "text worker");
  EXPECT_EQ(count("text b"), 1) << "one for both";
  EXPECT_EQ(count("load b"), 0);
  EXPECT_TRUE(is("a", ModelState::ready) && is("b", ModelState::absent));
  EXPECT_EQ(models_->resident().size(), 1u);
}

TEST_F(ModelsTest, a_text_worker_does_not_stand_in_the_way_of_a_load) {
  write("a", "bytes 900\nanswer_ms 600");
  start({"a"});
  auto slow = ask_text("a");
  ASSERT_TRUE(comes([&] { return count("text a") == 1; }));
  auto whole = ask("a");
  EXPECT_EQ(get(std::move(whole)).kind, Event::Kind::finish);
  EXPECT_EQ(get(std::move(slow)), "text worker");
  EXPECT_EQ(get(ask_text("a")), "model");
}

TEST_F(ModelsTest, requests_for_words_that_come_together_start_one_worker) {
  write("a", "load_ms 200");
  start({"a"});
  std::vector<std::future<std::string>> waiting;
  for (int i = 0; i < 16; ++i) waiting.push_back(ask_text("a"));
  for (auto& one : waiting) EXPECT_EQ(get(std::move(one)), "text worker");
  EXPECT_EQ(count("text a"), 1);
}

TEST_F(ModelsTest, a_text_worker_goes_when_nobody_asks) {
  write("a", "");
  start({"a"}, 1000, [](ModelsOptions& o) { o.text_idle = 100ms; });
  EXPECT_EQ(get(ask_text("a")), "text worker");
  std::this_thread::sleep_for(600ms);
  EXPECT_EQ(get(ask_text("a")), "text worker");
  EXPECT_EQ(count("text a"), 2);
}

TEST_F(ModelsTest, a_text_worker_that_ends_or_refuses_says_so_and_the_next_request_starts_another) {
  write("a", "die_at 2");
  write("b", "fail invalid_argument b.gguf: tokenizer kind x is not supported");
  start({"a", "b"});
  EXPECT_EQ(get(ask_text("a")), "text worker");
  EXPECT_EQ(get(ask_text("a")), "worker_lost");
  EXPECT_EQ(get(ask_text("a")), "text worker");
  const Outcome outcome = get(acquire("b", nullptr, Models::Wanted::text));
  EXPECT_EQ(outcome.refusal.kind, ErrorKind::corrupt_file) << "the file's fault, not the request's";
  EXPECT_EQ(outcome.refusal.message, "b.gguf: tokenizer kind x is not supported");
}

TEST_F(ModelsTest, more_models_than_text_workers_take_turns) {
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back("m" + std::to_string(i));
  for (const std::string& name : names) write(name, "");
  start(names);
  std::vector<std::future<std::string>> waiting;
  for (const std::string& name : names) waiting.push_back(ask_text(name));
  for (auto& one : waiting) EXPECT_EQ(get(std::move(one)), "text worker");
}

TEST_F(ModelsTest, a_wedged_text_worker_is_ended) {
  write("a", "mute");
  start({"a"}, 1000, [](ModelsOptions& o) { o.watchdog = 200ms; });
  EXPECT_EQ(get(ask_text("a")), "worker_lost");
  EXPECT_FALSE(models_->is_wedged());
}

TEST_F(ModelsTest, idle_ones_go_after_their_time) {
  write("a", "");
  write("b", "");
  write("c", "");
  start({"a", "b", "c"}, 1000, [](ModelsOptions& o) { o.ttl = 300ms; });
  models_->keep_alive("b", std::nullopt);
  models_->keep_alive("c", 0ms);
  for (const char* id : {"a", "b", "c"}) serve(id);
  EXPECT_TRUE(comes([&] { return is("c", ModelState::absent); }, 1s));
  EXPECT_TRUE(comes([&] { return is("a", ModelState::absent); }, 2s));
  std::this_thread::sleep_for(500ms);
  EXPECT_TRUE(is("b", ModelState::ready)) << "-1: never";
}

TEST_F(ModelsTest, rules_of_a_model_hold_however_often_it_is_loaded) {
  write("a", "");
  write("b", "");
  start({"a", "b"}, 1000, [](ModelsOptions& o) {
    o.ttl = 50ms;
    o.rules = [](const hub::FoundModel& model) {
      return model.path.stem() == "a" ? ModelRules{.pinned = true, .ttl = {}}
                                      : ModelRules{.pinned = false, .ttl = 600s};
    };
  });
  for (int i = 0; i < 2; ++i) {
    serve("a");
    serve("b");
    std::this_thread::sleep_for(400ms);
    EXPECT_TRUE(is("a", ModelState::ready) && view("a").pinned) << i;
    EXPECT_TRUE(is("b", ModelState::ready)) << i;
    for (const char* id : {"a", "b"}) models_->unload(id);
    ASSERT_TRUE(comes([&] { return is("a", ModelState::absent) && is("b", ModelState::absent); })) << i;
  }
}

// What it writes to the disk is finished first, whoever unloads it.
TEST_F(ModelsTest, an_unloaded_one_is_told_to_end_and_waited_for) {
  write("a", "drain_ms 300\nbytes 600");
  write("b", "drain_ms 300\nbytes 600");
  start({"a", "b"}, 1000, [](ModelsOptions& o) { o.ttl = 1h; });
  serve("a");
  models_->unload("a");
  EXPECT_TRUE(comes([&] { return count("drained a") == 1; })) << "it was killed";
  serve("a");
  serve("b");
  const auto all = events();
  EXPECT_EQ(std::count(all.begin(), std::ranges::find(all, "loaded b"), "drained a"), 2)
      << "it was killed to make room";
}

TEST_F(ModelsTest, one_that_does_not_end_is_killed) {
  write("a", "drain_ms 60000");
  start({"a"});
  serve("a");
  models_->unload("a");
  EXPECT_TRUE(comes([&] { return is("a", ModelState::absent); }));
  serve("a");  // not before the first one is gone
  EXPECT_EQ(count("load a"), 2);
  EXPECT_EQ(count("drained a"), 0);
}

TEST_F(ModelsTest, settings_outlive_an_unload) {
  write("a", "");
  start({"a"}, 1000, [](ModelsOptions& o) { o.ttl = 10ms; });
  models_->pin("a", true);
  serve("a");
  models_->unload("a");
  ASSERT_TRUE(comes([&] { return is("a", ModelState::absent); }));
  serve("a");
  std::this_thread::sleep_for(400ms);
  EXPECT_TRUE(is("a", ModelState::ready) && view("a").pinned);
  EXPECT_EQ(count("load a"), 2);
}

TEST_F(ModelsTest, a_worker_that_ends_is_there_again_within_two_seconds) {
  write("a", "");
  start({"a"});
  for (int i = 0; i < 8; ++i) {  // with an answer between, failures do not add up
    serve("a");
    const pid_t before = view("a").pid;
    ::kill(before, SIGKILL);
    const auto begin = Clock::now();
    ASSERT_TRUE(comes([&] { return is("a", ModelState::ready) && view("a").pid != before; })) << i;
    EXPECT_LT(Clock::now() - begin, 2s) << i;
  }
}

TEST_F(ModelsTest, a_request_that_ends_its_worker_is_told_and_the_next_one_served) {
  write("a", "die_at 2");
  start({"a"});
  serve("a");
  EXPECT_EQ(get(ask("a")).code, "worker_lost");
  serve("a");
}

TEST_F(ModelsTest, a_request_that_the_worker_never_read_may_go_to_the_next_one) {
  write("a", "die_at 2");
  write("b", "");
  start({"a", "b"});
  serve("a");
  EXPECT_FALSE(get(ask("a")).untaken) << "it was read, and may be what ended the worker";
  serve("b");
  const pid_t pid = view("b").pid;
  ::kill(pid, SIGSTOP);
  auto asked = ask("b");
  ASSERT_TRUE(comes([&] { return view("b").open_requests == 1; }));
  ::kill(pid, SIGKILL);
  const Event event = get(std::move(asked));
  EXPECT_EQ(event.code, "worker_lost");
  EXPECT_TRUE(event.untaken);
}

TEST_F(ModelsTest, requests_behind_the_end_of_a_worker_wait_for_the_next_one) {
  write("a", "");
  start({"a"});
  serve("a");
  for (int i = 0; i < 5; ++i) {
    std::shared_ptr<WorkerLink> link;
    ASSERT_TRUE(get(acquire("a", &link)).ready);
    ::kill(link->pid(), SIGKILL);
    ASSERT_TRUE(comes([&] { return link->is_lost(); }));
    serve("a");  // whatever the pool has heard of it by now
  }
  EXPECT_EQ(get(ask_text("a")), "model");
}

TEST_F(ModelsTest, requests_behind_the_end_of_a_text_worker_wait_for_the_next_one) {
  write("a", "");
  start({"a"});
  for (int i = 0; i < 5; ++i) {
    std::shared_ptr<WorkerLink> link;
    ASSERT_TRUE(get(acquire("a", &link, Models::Wanted::text)).ready);
    ::kill(link->pid(), SIGKILL);
    ASSERT_TRUE(comes([&] { return link->is_lost(); }));
    EXPECT_EQ(get(ask_text("a")), "text worker") << i;
  }
}

TEST_F(ModelsTest, looks_keep_no_model_loaded) {
  write("a", "");
  write("b", "answer_ms 400");
  start({"a", "b"}, 1000, [](ModelsOptions& o) { o.ttl = 500ms; });
  serve("a");
  serve("b");
  models_->unload("b");
  const auto look = [&](const char* id) {
    if (const auto worker = models_->at_hand(id)) worker->look([](const Event*, const json::Value&) {});
    EXPECT_EQ(view(id).open_requests, 0);
  };
  EXPECT_TRUE(comes([&] {
    look("a");
    look("b");
    return is("a", ModelState::absent) && is("b", ModelState::absent);
  })) << "they were kept awake";
  EXPECT_EQ(models_->at_hand("a"), nullptr) << "nor does a look load one";
  EXPECT_EQ(count("load a"), 1);
}

TEST_F(ModelsTest, five_failures_in_a_row_are_the_end_with_a_sentence) {
  write("a", "die");
  start({"a"});
  const auto begin = Clock::now();
  const Outcome outcome = get(acquire("a"), 40s);
  EXPECT_FALSE(outcome.ready);
  EXPECT_EQ(outcome.refusal.message, "a failed 5 times in a row: its worker process ended while it loaded");
  EXPECT_EQ(count("load a"), 5);
  EXPECT_GE(Clock::now() - begin, 14s) << "0, 2, 4, 8 s between";
  EXPECT_TRUE(is("a", ModelState::failed));
  EXPECT_FALSE(get(acquire("a")).ready);
  EXPECT_EQ(count("load a"), 5) << "it is not tried again by itself";
  write("a", "");
  models_->unload("a");  // but when a person says so
  serve("a");
}

TEST_F(ModelsTest, a_refused_load_says_why_and_may_be_tried_again) {
  write("a", "fail corrupt_file a.gguf: tensor blk.0 ends behind the file");
  start({"a"});
  const Outcome outcome = get(acquire("a"));
  EXPECT_EQ(outcome.refusal.kind, ErrorKind::corrupt_file);
  EXPECT_EQ(outcome.refusal.message, "a.gguf: tensor blk.0 ends behind the file");
  write("a", "");
  serve("a");
}

TEST_F(ModelsTest, a_program_that_is_not_there_is_a_refusal) {
  write("a", "");
  start({"a"}, 1000, [](ModelsOptions& o) {
    o.command = [](const hub::FoundModel&, int64_t) {
      return WorkerCommand{.argv = {"/nonexistent"}, .environment = {}};
    };
  });
  EXPECT_EQ(get(acquire("a")).refusal.kind, ErrorKind::io);
}

TEST_F(ModelsTest, a_program_that_ends_at_once_does_not_hang_its_load) {
  write("a", "");
  start({"a"}, 1000, [](ModelsOptions& o) {
    o.command = [](const hub::FoundModel&, int64_t) { return WorkerCommand{.argv = {"/bin/true"}, .environment = {}}; };
  });
  auto waiting = acquire("a");
  EXPECT_TRUE(comes([&] { return view("a").restarts >= 2; }, 5s)) << "it was not noticed";
}

TEST_F(ModelsTest, names_beyond_the_list_are_not_found) {
  write("a", "");
  write("b", "");
  start({"a"});
  EXPECT_EQ(models_->resolve("a"), "a");
  try {
    models_->resolve("b");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_STREQ(error.what(), "there is no model b; there is a");
  }
  EXPECT_THROW(models_->resolve(path("b")), Error);
  EXPECT_THROW(models_->resolve(""), Error) << "no default";
}

TEST_F(ModelsTest, a_wedged_worker_is_ended_and_started_again) {
  write("a", "mute");
  start({"a"}, 1000, [](ModelsOptions& o) { o.watchdog = 400ms; });
  auto asked = ask("a");
  ASSERT_TRUE(comes([&] { return models_->is_wedged(); }, 2s));
  EXPECT_EQ(get(std::move(asked), 5s).code, "worker_lost");
  ASSERT_TRUE(comes([&] { return is("a", ModelState::ready); }, 2s));
  EXPECT_FALSE(models_->is_wedged());
  EXPECT_EQ(models_->restarts(), 1);
}

TEST_F(ModelsTest, a_stopped_worker_is_wedged_and_an_idle_one_is_not) {
  write("a", "");
  start({"a"}, 1000, [](ModelsOptions& o) { o.watchdog = 400ms; });
  serve("a");
  std::this_thread::sleep_for(800ms);
  EXPECT_FALSE(models_->is_wedged());
  const pid_t pid = view("a").pid;
  ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(800ms);
  EXPECT_EQ(models_->restarts(), 0) << "idle is no fault";
  auto asked = ask("a");
  EXPECT_FALSE(models_->is_wedged()) << "the time before the request does not count";
  EXPECT_EQ(get(std::move(asked), 5s).code, "worker_lost");
  serve("a");
  EXPECT_NE(view("a").pid, pid);
}

TEST_F(ModelsTest, the_end_does_not_wait_for_a_wedged_one) {
  write("a", "mute");
  start({"a"});
  auto asked = ask("a");
  ASSERT_TRUE(comes([&] { return view("a").open_requests == 1; }));
  const auto begin = Clock::now();
  models_->drain(25s);
  EXPECT_LT(Clock::now() - begin, 5s);
  EXPECT_EQ(get(std::move(asked)).code, "worker_lost");
}

TEST_F(ModelsTest, the_end_waits_for_open_answers) {
  write("a", "answer_ms 700");
  start({"a"});
  auto asked = ask("a");
  ASSERT_TRUE(comes([&] { return view("a").open_requests == 1; }));
  models_->drain(10s);
  EXPECT_EQ(get(std::move(asked), 1s).kind, Event::Kind::finish);
  EXPECT_EQ(get(acquire("a")).refusal.kind, ErrorKind::busy);
}

TEST_F(ModelsTest, the_end_waits_for_no_load) {
  write("slow", "load_ms 3600000\n");
  write("next", "");
  start({"slow", "next"});
  auto first = acquire("slow"), second = acquire("next");
  ASSERT_TRUE(comes([&] { return count("load slow") == 1; }));
  models_->drain(1h);  // of which it takes none
  for (auto* waits : {&first, &second}) {
    const Outcome outcome = get(std::move(*waits));
    EXPECT_FALSE(outcome.ready);
    EXPECT_EQ(outcome.refusal.kind, ErrorKind::busy);
    EXPECT_EQ(outcome.refusal.message, "the server is shutting down");
  }
  EXPECT_EQ(count("load next"), 0);
}

TEST_F(ModelsTest, a_reload_changes_what_comes_next) {
  write("a", "");
  write("b", "");
  ModelsOptions changed;
  start({"a", "b"}, 1000, [&](ModelsOptions& o) {
    o.ttl = 1h;
    changed = o;
  });
  serve("a");
  std::atomic<int> starts{0};
  changed.ttl = 50ms;
  changed.command = [&starts, command = changed.command](const hub::FoundModel& model, int64_t bytes) {
    ++starts;
    return command(model, bytes);
  };
  models_->reload(changed);
  EXPECT_TRUE(comes([&] { return is("a", ModelState::absent); })) << "its time is over by the new measure";
  EXPECT_EQ(starts, 0);
  serve("b");
  EXPECT_EQ(starts, 1);
}

TEST_F(ModelsTest, a_reload_changes_workers_of_text_that_come_next) {
  write("a", "");
  write("b", "");
  ModelsOptions changed;
  start({"a", "b"}, 1000, [&](ModelsOptions& o) { changed = o; });
  EXPECT_TRUE(get(acquire("a", nullptr, Models::Wanted::text)).ready);
  std::atomic<int> starts{0};
  changed.text_command = [&starts, command = changed.text_command](const hub::FoundModel& model) {
    ++starts;
    return command(model);
  };
  models_->reload(changed);
  EXPECT_TRUE(get(acquire("a", nullptr, Models::Wanted::text)).ready);
  EXPECT_EQ(starts, 0) << "the one that runs stays";
  EXPECT_TRUE(get(acquire("b", nullptr, Models::Wanted::text)).ready);
  EXPECT_EQ(starts, 1);
}

}  // namespace
}  // namespace hearth::server
