// One conversation of /ws/chat, driven from several threads at once.
#include "server/front/chat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "net/raw_client.h"
#include "server/front/scripted_services.h"
#include "support/allocation_hook.h"

namespace hearth::server {
namespace {

class ChatTest : public ScriptedServices {
 protected:
  // A server of these models, the first of which is the default one, and a socket to it.
  void open(const std::vector<std::string>& names) {
    for (const std::string& name : names) write(name, "");
    const auto socket = std::make_shared<std::promise<Chat::Socket>>();
    net::Handlers handlers;
    handlers.on_head = [](const net::RequestHead&) { return net::BodyPlan{}; };
    handlers.on_request = [socket](const net::Request& request, const std::shared_ptr<net::Exchange>& exchange) {
      socket->set_value(net::accept_websocket(*exchange, request.head, {}, {}));
    };
    serve(names, std::move(handlers));
    client_ = std::make_unique<net::test::RawClient>(http_->port());
    client_->send(
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    EXPECT_EQ(client_->response().status, 101);
    socket_ = get(socket->get_future());
    chat_ = std::make_shared<Chat>(*services_, "");
    chat_->open(socket_);
    EXPECT_EQ(type_of(next()), "ready");
  }

  void TearDown() override {
    chat_ = nullptr;
    socket_ = nullptr;
    ScriptedServices::TearDown();
  }

  void say(const std::string& type, json::Object fields = {}) {
    fields["type"] = type;
    const int64_t id = ++ids_;
    fields["id"] = id;
    chat_->handle(socket_, frames::read_frame(json::dump(fields), {}));
  }

  json::Value next() {
    const std::string head = client_->take(2);
    if (head.size() < 2) throw std::runtime_error("no frame came");
    size_t n = head[1] & 127;
    if (n > 125) {
      const std::string more = client_->take(n == 126 ? 2 : 8);
      n = 0;
      for (const char c : more) n = 256 * n + static_cast<unsigned char>(c);
    }
    return json::parse(client_->take(n), "a frame");
  }
  // Up to the first of this type, that one too.
  std::vector<json::Value> until(const std::string& type) {
    std::vector<json::Value> frames;
    do frames.push_back(next());
    while (type_of(frames.back()) != type);
    return frames;
  }
  static std::string type_of(const json::Value& frame) { return *frame.get("type")->string(); }

  std::unique_ptr<net::test::RawClient> client_;
  Chat::Socket socket_;
  std::shared_ptr<Chat> chat_;
  std::atomic<int64_t> ids_{0};
};

// Whoever comes first says how it ended, and the other one nothing: what was refused was not aborted.
TEST_F(ChatTest, a_turn_that_is_refused_while_it_is_aborted_ends_once) {
  constexpr int kTurns = 500, kAborts = 8;
  open({"a"});
  counters_.running = 1 << 20;  // so that every turn is refused
  std::atomic<int> asked{0};
  std::thread aborts([&] {
    for (int turn = 1; turn <= kTurns; ++turn) {
      while (asked < turn) std::this_thread::yield();
      for (int i = 0; i < kAborts; ++i) say("abort");
    }
  });
  for (int turn = 1; turn <= kTurns; ++turn) {
    asked = turn;
    json::Object prompt;
    prompt["text"] = "Hi";
    say("prompt", std::move(prompt));
  }
  aborts.join();
  counters_.running = 0;
  say("set_model", [] {
    json::Object body;
    body["model"] = "a";
    return body;
  }());
  std::map<int64_t, int> errors;
  std::map<int64_t, std::vector<std::string>> ends;
  int64_t refused = 0;
  for (const json::Value& frame : until("ready")) {
    const std::string type = type_of(frame);
    if (type == "error") ++errors[frame.get("turn")->as_int("turn")];
    if (type == "turn_end") ends[frame.get("turn")->as_int("turn")].push_back(*frame.get("reason")->string());
  }
  for (int64_t turn = 1; turn <= kTurns; ++turn) {
    ASSERT_EQ(ends[turn].size(), 1u) << turn;
    ASSERT_EQ(errors[turn], ends[turn][0] == "error" ? 1 : 0) << turn << " ended as " << ends[turn][0];
    refused += errors[turn];
  }
  EXPECT_GT(refused, 0);
}

TEST_F(ChatTest, a_turn_that_nobody_waits_for_any_more_loads_no_model) {
  open({"a"});
  std::unique_lock busy(counters_.mutex);  // its run stands here, before it listens
  std::thread prompt([&] {
    json::Object body;
    body["text"] = "Hi";
    say("prompt", std::move(body));
  });
  until("turn_start");
  std::thread abort([&] { say("abort"); });
  const json::Value end = until("turn_end").back();
  EXPECT_EQ(*end.get("reason")->string(), "aborted");
  busy.unlock();
  prompt.join();
  abort.join();
  EXPECT_TRUE(is("a", ModelState::absent));
  EXPECT_EQ(counters_.running, 0);
}

// Whichever allocation fails while a prompt is taken: it is told of, a turn that began ends, and the next one may
// begin.
TEST_F(ChatTest, memory_that_cannot_be_had_ends_one_turn_at_most) {
  open({"a"});
  size_t failed = 0;
  for (size_t nth = 1;; ++nth) {
    chat_ = std::make_shared<Chat>(*services_, "");  // a longer one would need more memory each time
    chat_->open(socket_);
    until("ready");
    json::Object prompt, effort;
    prompt["type"] = "prompt";
    prompt["text"] = "a text that is long enough for the heap";
    const int64_t id = ++ids_;
    prompt["id"] = id;
    const frames::ClientFrame frame = frames::read_frame(json::dump(prompt), {});
    bool is_told = false, is_last = false;
    {
      const test::AllocationWatch watch(nth);
      try {
        chat_->handle(socket_, frame);
      } catch (const std::bad_alloc&) {
        is_told = true;  // by its socket
      }
      is_last = watch.so_far().count < nth;
    }
    effort["effort"] = "low";
    say("set_thinking", std::move(effort));
    std::map<std::string, int> count;
    for (bool is_heard = false; !is_heard;) {
      const json::Value one = next();
      ++count[type_of(one)];
      const json::Value* of = one.get("id");
      is_told |= of && *of == json::Value(id);
      is_heard = of && *of == json::Value(ids_.load());
    }
    ASSERT_TRUE(is_told) << nth;
    if (count["turn_start"] > count["turn_end"]) until("turn_end");
    if (is_last) break;
    ++failed;
  }
  EXPECT_GT(failed, 20u);
  json::Object prompt;
  prompt["text"] = "Hi";
  say("prompt", std::move(prompt));
  EXPECT_EQ(*until("turn_end").back().get("reason")->string(), "stop");
}

TEST_F(ChatTest, an_adapter_that_the_next_model_does_not_have_goes) {
  open({"a", "b"});
  for (const auto& [model, name] : {std::pair("a", "x"), std::pair("a", "y"), std::pair("b", "y")}) {
    dir_.write(std::string("adapters/") + name + "/adapters.safetensors", "");
    const auto folder = dir_.write(std::string("adapters/") + name + "/adapter_config.json", "good").parent_path();
    auto promise = std::make_shared<std::promise<std::string>>();
    models_->mount(
        model, {.id = name, .files = open_adapter(folder), .facts = {}},
        [promise](const Event* error, const json::Object&) { promise->set_value(error ? error->text : ""); },
        [promise](const Refusal& refusal) { promise->set_value(refusal.message); });
    ASSERT_EQ(get(promise->get_future()), "");
  }
  const auto change = [&](const std::string& adapter, const std::string& from, const std::string& to) {
    json::Object before, chosen, after;
    before["model"] = from;
    chosen["spec"] = adapter;
    after["model"] = to;
    say("set_model", std::move(before));
    until("ready");
    say("set_adapter", std::move(chosen));
    until("ack");
    say("set_model", std::move(after));
    std::string told;
    for (const json::Value& frame : until("ready"))
      if (type_of(frame) == "error") told += *frame.get("sentence")->string();
    return told;
  };
  EXPECT_EQ(change("x", "a", "b"), "adapter x is not mounted on b: it is off");
  EXPECT_EQ(change("x+y", "a", "b"), "adapter x+y is not mounted on b: it is off");
  EXPECT_EQ(change("y", "a", "b"), "");
  EXPECT_EQ(change("none", "a", "b"), "");
  EXPECT_EQ(change("x", "a", "a"), "");
}

}  // namespace
}  // namespace hearth::server
