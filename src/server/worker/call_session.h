// Requests that one document answers, one after the other on a thread of its own: all that a worker without an engine
// for text has to do.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/queue.h"
#include "server/wire.h"

namespace hearth::server {

// What is answered, and how. Throws of `answer` become the request's error.
struct CallAnswers {
  std::function<json::Object(FrameKind kind, const json::Value& body, const std::atomic<bool>& cancelled)> answer;
  std::string no_text;  // to a request for text: why there is none
};

// The interface of Session (session.h), as far as these requests have one.
class CallSession {
 public:
  // send as Session's; called on the session's thread and the receiving one, never by two at once.
  CallSession(CallAnswers calls, std::function<void(std::string_view frames)> send);
  ~CallSession();
  CallSession(const CallSession&) = delete;
  CallSession& operator=(const CallSession&) = delete;

  // Receiving thread.
  void submit(json::Value body);  // it makes no answers: an error
  void cancel(uint64_t id);
  void hold(uint64_t, bool) {}
  void call(FrameKind kind, json::Value body);
  void adapter(Frame frame);  // it takes none: an error
  void drain();

 private:
  struct Ask {
    uint64_t id = 0;
    FrameKind kind{};
    json::Value body;
    std::atomic<bool> cancelled{false};
  };
  void run();
  void reply(uint64_t id, json::Object body);
  void refuse(uint64_t id, const Error& error);
  void send(const Frame& frame);

  CallAnswers calls_;
  std::function<void(std::string_view)> send_;
  std::mutex sending_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Ask>> asked_;
  Queue<std::shared_ptr<Ask>> work_;
  std::thread thread_;
};

}  // namespace hearth::server
