// Answers to many requests at once: continuous batching over one engine (spec server 30-35, 44-46).
//
// A step evaluates one id of every row that decodes and, in the room left of a chunk, prompts of rows that have some
// left, oldest first: rows join and leave between steps, and no row waits for more than one chunk of others. What a row
// draws depends on its own ids and options alone; so it is the same alone, in any company, with or without a cached
// prefix, and after it was parked.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "decode/constraint.h"
#include "decode/engine.h"
#include "decode/generate.h"
#include "decode/prefix_disk.h"
#include "decode/prefix_tree.h"
#include "decode/wait_queue.h"

namespace hearth::decode {

struct SchedulerOptions {
  int64_t waiting_max = 256;             // requests that may wait; more are refused
  int64_t prefix_bytes = 2'000'000'000;  // of the KV pool, kept for later requests; 0: nothing is kept
  int64_t tokens_reserved = 1024;        // of an answer, counted at admission; longer ones grow into what is free
  PrefixDisk* disk = nullptr;  // finished answers go there, and prompts come from there; outlives the scheduler
  std::chrono::nanoseconds demote_idle{0};       // prefixes unused for so long are kept on the disk alone; 0: never
  const hearth::Clock* clock = &system_clock();  // that says so
};

struct Request {
  std::vector<int32_t> prompt;
  SamplerOptions sampler;
  int64_t max_tokens = 256;          // lowered to the room left in the context
  std::vector<int32_t> end_ids;      // an answer ends before one; it is not reported
  std::vector<int32_t> newline_ids;  // exempt from xtc, as end ids are
  std::string owner;                 // owners take turns
  std::string space;  // requests of one space share prefixes: adapter, images and credential are its name
  // 0 .. kTopLogprobsMax: log-probabilities of the tokens, and so many of the likeliest beside each; nullopt: none.
  std::optional<int64_t> top_logprobs;
  std::shared_ptr<Constraint> constraint;  // of this answer alone
  int32_t adapter = kDefaultAdapter;       // slot; taken at submit(), and held until the request ends
};
inline constexpr int64_t kTopLogprobsMax = 20;

// A token of an answer. Log-probabilities are natural ones after constraint, biases and penalties, before the sets and
// the temperature (spec models 39), and the same in any company; 0 where none are wanted.
struct TokenEvent {
  int32_t id = 0;
  float logprob = 0;
  std::span<const std::pair<int32_t, float>> top;  // the likeliest, falling, ties lower id first; during the call
};

// Called on the engine thread, from step() or the scheduler's destructor; each request ends with one call of done or
// failed. `admitted` comes once its cached positions are in place. None may throw or call the scheduler. Each may be
// empty.
struct Events {
  std::function<void(int64_t prompt, int64_t cached)> admitted;
  // [V] behind the prompt, once, as the model gave them: no constraint, bias or penalty has touched them. During the
  // call. An answer of max_tokens 0 gets them too.
  std::function<void(std::span<const float> logits)> prompt_logits;
  std::function<bool(const TokenEvent& token)> token;  // false: that was enough (finish = stop)
  std::function<void(FinishReason reason, const GenerateStats& stats)> done;
  std::function<void(const Error& error)> failed;
};

using RequestId = uint64_t;

struct Submission {
  Request request;
  Events events;
};

// Engine thread only.
class Scheduler {
 public:
  // The engine must outlive the scheduler and be stepped by nobody else. It offers sequences_max rows; gathered_max
  // must not be less. Throws Error{invalid_argument} otherwise.
  Scheduler(Engine& engine, SchedulerOptions options = {});
  ~Scheduler();  // requests that have not ended are cancelled
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Throws, and does nothing: Error{invalid_argument} for an empty prompt, an id outside the vocabulary, sampler
  // options or top_logprobs out of range, an empty adapter slot; Error{out_of_memory} for a prompt beyond the context,
  // with both numbers; Error{busy} when waiting_max requests wait.
  RequestId submit(Request request, Events events);

  // Several answers to one prompt, which is evaluated once (spec server 15): requests alike in prompt, space, owner and
  // adapter. Each answer is the one that submit() would give; to all but the first to start the whole prompt counts as
  // cached. All of them or none: throws as submit(), and Error{invalid_argument} where they are not alike or there are
  // none.
  std::vector<RequestId> submit_together(std::vector<Submission> answers);

  // Ends it before the next step (finish = cancelled), waiting, held or not; an unknown or finished one is nothing.
  void cancel(RequestId id);

  // From the next step on it is not stepped, until release(): its reader is slow (spec server 48). It leaves its place
  // in the batch to others and keeps its pages while nobody needs them; its answer is the same. An unknown or finished
  // one is nothing. Between steps only.
  void hold(RequestId id);
  void release(RequestId id);

  // One step. False: there was nothing to do, though requests may be held. Never throws: what goes wrong ends the rows
  // that it touches.
  bool step();

  // Moves prefixes that nobody used for demote_idle from memory to the disk, some at a time: what a file holds is given
  // up, what none holds is written first. step() does so when a request ends; its owner while step() has nothing to do.
  // When to call again; absent: there is nothing to wait for.
  std::optional<std::chrono::nanoseconds> demote();

  // Rows of the batch, requests that wait, those that are held, rows that were parked for want of pages since the
  // start.
  struct Counts {
    int64_t active = 0, waiting = 0, held = 0, parked = 0, submitted = 0, cancelled = 0;
    double evaluating_ms = 0, sampling_ms = 0;  // of the steps since the start: to the logits; from there to tokens
  };
  Counts counts() const;
  const PrefixTree& prefixes() const { return prefixes_; }
  void forget(std::string_view space) { prefixes_.forget(space); }  // prefixes of an adapter that is to go

 private:
  using Clock = std::chrono::steady_clock;
  struct Row;
  struct SharedPrompt;
  using RowPtr = std::unique_ptr<Row>;

  RowPtr make_row(Request request, Events events);
  void check_queue(int64_t more) const;
  int64_t waiting_rows() const;
  void take_out(const std::function<bool(const Row&)>& which, const std::function<void(RowPtr)>& give);
  void take_cancellations();
  void leave_prompt(Row& row);
  void settle_prompts();
  void share_prompt(Row& row, std::span<const float> logits);
  bool admit();
  bool fits(const Row& row) const;
  void start(RowPtr row);
  bool reserve(Row& row, int64_t n);
  bool give_up_prompt();
  bool park_held();
  void begin_restore(Row& row);
  void advance_restores();
  void announce(Row& row);
  void park(Row& row);
  void compose();
  bool prepare_draw(Row& row, std::span<float> logits);
  void draw(Row& row) const noexcept;
  void deliver(Row& row);
  template <class Call>
  bool guarded(Row& row, const Call& call);
  void keep_prompt(Row& row);
  void finish(Row& row, FinishReason reason);
  void fail(Row& row, const Error& error);
  void sweep();

  Engine& engine_;
  SchedulerOptions options_;
  PrefixTree prefixes_;
  WaitQueue<RowPtr> waiting_;
  std::vector<RowPtr> active_;  // in order of admission
  std::vector<RowPtr> held_;    // with those that were released and find no place yet
  std::vector<std::unique_ptr<SharedPrompt>> prompts_;
  std::vector<RequestId> cancelled_;
  std::vector<Row*> drawing_;      // rows of the step at hand that draw
  std::vector<Row*> rows_;         // of the step at hand,
  std::vector<StepInput> inputs_;  // and what it evaluates of each
  std::vector<float> logits_;      // of a shared prompt, for one of its answers to draw from
  RequestId next_id_ = 1;
  std::chrono::nanoseconds demotes_at_{0};  // not before
  bool request_ended_ = false;              // since the last look
  Counts counts_;
};

}  // namespace hearth::decode
