// A request that the worker has taken and not answered yet, as its threads share it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "decode/generate.h"
#include "server/generation.h"
#include "server/worker/answer_text.h"

namespace hearth::server {

// Handed from thread to thread by their queues: receiving, prompt, engine, text. What a later one writes the earlier
// ones read no more, but for `cancelled`.
struct LiveRequest {
  struct Answer {
    std::unique_ptr<AnswerText> text;  // prompt thread, then text thread; none: cancelled before it began
    int64_t max_tokens = 0;            // prompt thread
    // Text thread:
    bool stopped = false;
    bool given_up = false;    // its error is kept
    std::vector<Event> kept;  // not sent yet
    int64_t told = 0;         // tokens that events have told of
    bool ended = false;
  };

  uint64_t id = 0;
  Generation generation;
  std::atomic<bool> cancelled{false};  // any thread
  int64_t prompt_tokens = 0;           // prompt thread
  std::vector<Answer> answers;         // prompt thread: as many as wanted
  std::string adapter;                 // engine thread: its name; empty: the base model
  // Text thread:
  std::vector<float> logits;  // behind the prompt, where they are the answer
  int64_t open = 0;           // answers that have not ended; set by the receiving thread
};
using LiveRequestPtr = std::shared_ptr<LiveRequest>;

// What the engine thread tells the text thread of one answer.
struct EngineOutput {
  enum class Kind : uint8_t { admitted, logits, token, done, failed } kind;
  LiveRequestPtr live;
  int64_t answer = 0;
  struct Token {
    int32_t id;
    float logprob;
    std::vector<std::pair<int32_t, float>> top;
  } token{};
  std::vector<float> logits{};  // behind the prompt
  int64_t cached = 0;           // admitted
  decode::FinishReason reason{};
  decode::GenerateStats stats{};
  std::shared_ptr<const Error> error{};
};

}  // namespace hearth::server
