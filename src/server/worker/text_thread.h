// The thread that turns tokens into words, one step behind the engine, and sends them (spec server 5).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "server/worker/live_request.h"
#include "text/tokenizer.h"

namespace hearth::server {

// Its hooks are called on its own thread; what they refer to must outlive it.
class TextThread {
 public:
  struct Hooks {
    std::function<void(std::string_view frames)> send;  // whole frames, many at once
    // Nothing more is wanted of the answer: a stop string was found, or the only call that may be.
    std::function<void(const LiveRequestPtr& live, int64_t answer)> stop;
    std::function<void(const LiveRequestPtr& live)> ended;  // the last answer of the request has ended, and is sent
                                                            // with the next frames
    // For logits behind a prompt that make no distribution.
    std::function<Error(const LiveRequest& live, std::string_view what)> blame;
  };

  TextThread(const text::Tokenizer& tokenizer, Hooks hooks);
  ~TextThread();  // what was pushed is sent first
  TextThread(const TextThread&) = delete;
  TextThread& operator=(const TextThread&) = delete;

  // Any thread. Wake::later: nobody waits for it, so it may go with what comes next (ADR 0012).
  void push(EngineOutput output, Wake wake = Wake::now) { outputs_.push(std::move(output), wake); }

 private:
  void run();
  bool handle(EngineOutput& output);
  Event finish_event(LiveRequest& live, const LiveRequest::Answer& answer, const EngineOutput& output) const;
  void give_up(const LiveRequestPtr& live, int64_t number, const Error& error);
  void append_kept(const LiveRequestPtr& live, int64_t number, std::string& frames);
  void end(const LiveRequestPtr& live, LiveRequest::Answer& answer);
  void keep(const LiveRequestPtr& live, int64_t answer, std::vector<Event>& events);
  int64_t send_kept();

  const text::Tokenizer& tokenizer_;
  Hooks hooks_;
  Queue<EngineOutput> outputs_;
  std::vector<std::pair<LiveRequestPtr, int64_t>> kept_;  // answers with events that are not sent yet
  std::thread thread_;
};

}  // namespace hearth::server
