// A request from its parse to its answer, with a sink of the test's own in place of a client.
#include "server/front/generate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "server/dialects/openai_chat.h"
#include "server/front/scripted_services.h"

namespace hearth::server {
namespace {

// All bytes have gone the moment that it has said that they wait: an I/O thread is that fast, a link's thread that
// slow.
class FastReader final : public AnswerSink {
 public:
  ~FastReader() override {
    if (io_.joinable()) io_.join();
  }
  void listen(std::function<void()>, std::function<void()> drained) override { drained_ = std::move(drained); }
  void begin(std::vector<net::Header>, const std::string&) override {}
  bool write(std::string_view) override {
    if (io_.joinable()) return true;
    std::promise<void> done;
    std::future<void> is_done = done.get_future();
    io_ = std::thread([this, done = std::move(done)]() mutable {
      drained_();
      done.set_value();
    });
    is_done.wait_for(200ms);  // or until who writes is known to pause
    return false;
  }
  void end() override { ended_.set_value(); }
  void answer(const json::Value&, std::vector<net::Header>) override {}
  void refuse(const Problem& problem) override { ADD_FAILURE() << problem.message; }

  std::future<void> ended() { return ended_.get_future(); }

 private:
  std::function<void()> drained_;
  std::thread io_;
  std::promise<void> ended_;
};

class GenerateTest : public ScriptedServices {
 protected:
  void open(const std::string& script) {
    write("a", script);
    net::Handlers handlers;
    handlers.on_head = [](const net::RequestHead&) { return net::BodyPlan{}; };
    handlers.on_request = [](const net::Request&, const std::shared_ptr<net::Exchange>&) {};
    serve({"a"}, std::move(handlers));
  }

  void ask(std::shared_ptr<AnswerSink> sink) {
    const json::Value body =
        json::parse(R"({"messages": [{"role": "user", "content": "Hi"}], "stream": true})", "a body");
    openai::ChatRequest request = openai::parse_chat(*body.object());
    GenerationCall call{.model = "",
                        .generation = request.generation,
                        .stream = true,
                        .writer = openai::chat_writer(request),
                        .keep_alive = ""};
    generate(*services_, std::move(call), {.owner = "", .request_id = "r", .route = "/v1/chat/completions"},
             std::move(sink));
  }
};

TEST_F(GenerateTest, a_reader_that_catches_up_at_once_is_not_waited_for) {
  open("talk");
  const auto sink = std::make_shared<FastReader>();
  std::future<void> ended = sink->ended();
  ask(sink);
  EXPECT_EQ(ended.wait_for(20s), std::future_status::ready) << "the worker holds a stream that nobody will release";
}

}  // namespace
}  // namespace hearth::server
