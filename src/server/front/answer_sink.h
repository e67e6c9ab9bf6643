// Where an answer goes: the exchange of an HTTP request, or a turn of a WebSocket (front/chat.h).
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "net/http.h"
#include "server/http/problem.h"

namespace hearth::server {

// One thread at a time, but for the callbacks that it makes. Nothing blocks.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;

  // Before anything else. `gone`: nobody waits for the answer any more; once, at once if that is so already. `drained`:
  // what write() had paused may go on. Both come with no lock held.
  virtual void listen(std::function<void()> gone, std::function<void()> drained) = 0;

  // The model that is to answer is at hand, and what its worker says of it (Models::Ready). Once more where another
  // worker of it has to answer.
  virtual void at_hand(const json::Object& /*facts*/) {}

  // A stream: begin, pieces, the end. What a write is given is kept; false: pause until drained.
  virtual void begin(std::vector<net::Header> headers, const std::string& ping) = 0;  // `ping` breaks silence
  virtual bool write(std::string_view bytes) = 0;
  virtual void end() = 0;

  // In place of a stream: the whole answer, or why there is none.
  virtual void answer(const json::Value& document, std::vector<net::Header> headers) = 0;
  virtual void refuse(const Problem& problem) = 0;
};

}  // namespace hearth::server
