// Inside of the scheduler: an answer, and a prompt that several answers share.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/scheduler.h"

namespace hearth::decode {

// In one place at a time: the wait queue, the batch, the list of held ones, or beside the prompt that it waits for.
struct Scheduler::Row {
  enum class State : uint8_t { runs, parked, ended };

  RequestId id;
  Request request;
  Events events;
  Sampler sampler;
  int64_t max_tokens;
  std::vector<int32_t> history;  // prompt and answer
  Sequence sequence;             // of history, as far as it is evaluated
  GenerateStats stats;
  Clock::time_point submitted, admitted, first_logits;
  State state = State::runs;
  bool held = false, announced = false;
  std::unique_ptr<PrefixRestore> restore{};  // its prompt comes from the disk; no step until it is there
  SharedPrompt* shared = nullptr;            // until its first logits are there
  int64_t taken = 0;                         // ids of the step at hand,
  std::span<float> logits{};                 // its logits, if it draws,
  Sampled token{};                           // and what it drew,
  std::optional<Error> error{};              // or why it could not

  bool runs() const { return state == State::runs; }
  int64_t pending() const { return static_cast<int64_t>(history.size()) - sequence.length(); }
  bool steps() const { return runs() && !restore; }
  bool decodes() const { return pending() == 1 && stats.generated_tokens > 0; }
};

// One row evaluates it as if it were alone; the others wait here. At its end they go to the wait queue, and start from
// copies of the logits and of the sequence, which shares pages. Those are given up when the pool needs the pages: who
// has not started then does as any request.
struct Scheduler::SharedPrompt {
  enum class State : uint8_t { cold, ready, given_up };

  State state = State::cold;
  Row* evaluates = nullptr;
  int64_t users = 0;  // rows that name it
  std::vector<RowPtr> siblings;
  Sequence sequence;
  std::vector<float> logits;  // [V] behind the prompt
};

inline double ms_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace hearth::decode
