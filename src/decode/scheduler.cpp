#include "decode/scheduler.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hearth::decode {

using graph::kPagePositions;

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
  int64_t taken = 0;  // ids of the step at hand

  bool runs() const { return state == State::runs; }
  int64_t pending() const { return static_cast<int64_t>(history.size()) - sequence.length(); }
  bool decodes() const { return pending() == 1 && stats.generated_tokens > 0; }
};

namespace {

double ms_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Scheduler::Scheduler(Engine& engine, SchedulerOptions options)
    : engine_(engine), options_(options), prefixes_(engine.cache(), engine.page_bytes()) {
  if (engine.options().gathered_max < engine.options().sequences_max)
    hearth::fail(ErrorKind::invalid_argument, "{} rows decode together, logits are gathered for {}",
                 engine.options().sequences_max, engine.options().gathered_max);
}

Scheduler::~Scheduler() {
  waiting_.remove([](const RowPtr&) { return true; }, [&](RowPtr row) { finish(*row, FinishReason::cancelled); });
  for (RowPtr& row : active_) finish(*row, FinishReason::cancelled);
}

RequestId Scheduler::submit(Request request, Events events) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt == 0) hearth::fail(ErrorKind::invalid_argument, "the prompt is empty");
  if (prompt > engine_.context())
    hearth::fail(ErrorKind::out_of_memory, "the prompt has {} tokens, the context holds {}", prompt, engine_.context());
  if (request.max_tokens < 0)
    hearth::fail(ErrorKind::invalid_argument, "max-tokens is {}, expected 0 or more", request.max_tokens);
  for (const int32_t id : request.prompt)
    if (id < 0 || id >= engine_.spec().V)
      hearth::fail(ErrorKind::invalid_argument, "token id {} is outside the vocabulary of {}", id, engine_.spec().V);
  if (const int64_t top = request.top_logprobs.value_or(0); top < 0 || top > kTopLogprobsMax)
    hearth::fail(ErrorKind::invalid_argument, "top_logprobs is {}, expected 0 to {}", top, kTopLogprobsMax);
  if (waiting_.size() >= options_.waiting_max)
    hearth::fail(ErrorKind::busy, "{} requests wait already", waiting_.size());

  Sampler sampler(request.sampler, engine_.spec().V, joined(request.end_ids, request.newline_ids),
                  request.top_logprobs.value_or(0));
  const std::string owner = request.owner;
  // The last token drawn need not be evaluated, so prompt + answer may pass the context by one.
  const int64_t max_tokens = std::min(request.max_tokens, engine_.context() - prompt + 1);
  auto row = std::make_unique<Row>(Row{.id = next_id_++,
                                       .request = std::move(request),
                                       .events = std::move(events),
                                       .sampler = std::move(sampler),
                                       .max_tokens = max_tokens,
                                       .history = {},
                                       .sequence = engine_.cache().make(),
                                       .stats = {},
                                       .submitted = Clock::now(),
                                       .admitted = {},
                                       .first_logits = {}});
  row->stats.prompt_tokens = prompt;
  row->history = row->request.prompt;
  row->history.reserve(static_cast<size_t>(prompt + max_tokens));
  const RequestId id = row->id;
  waiting_.push(owner, std::move(row));
  ++counts_.submitted;
  return id;
}

void Scheduler::cancel(RequestId id) { cancelled_.push_back(id); }

void Scheduler::take_cancellations() {
  if (cancelled_.empty()) return;
  const auto gone = [&](const RowPtr& row) {
    return std::find(cancelled_.begin(), cancelled_.end(), row->id) != cancelled_.end();
  };
  const auto end = [&](Row& row) {
    ++counts_.cancelled;
    finish(row, FinishReason::cancelled);
  };
  waiting_.remove(gone, [&](RowPtr row) { end(*row); });
  for (RowPtr& row : active_)
    if (gone(row)) end(*row);
  cancelled_.clear();
  sweep();
}

// The pool holds every active row's prompt and the part of its answer that is reserved, and this row's too. What the
// prefix tree refers to counts as free: it is given up when it is in the way.
bool Scheduler::fits(const Row& row) const {
  const auto positions = [&](const Row& r) {
    const int64_t answer = std::min(r.max_tokens, options_.tokens_reserved);
    return std::min(engine_.context(), std::max<int64_t>(static_cast<int64_t>(r.history.size()),
                                                         static_cast<int64_t>(r.request.prompt.size()) + answer));
  };
  for (size_t g = 0; g < engine_.page_bytes().size(); ++g) {
    int64_t pages = engine_.pages_for(g, positions(row));
    for (const RowPtr& other : active_) pages += engine_.pages_for(g, positions(*other));
    if (pages > engine_.cache().pages_total(g)) return false;
  }
  return true;
}

void Scheduler::admit() {
  while (std::cmp_less(active_.size(), engine_.options().sequences_max)) {
    std::optional<RowPtr> row = waiting_.take([&](const RowPtr& r) { return active_.empty() || fits(*r); });
    if (!row) return;
    start(std::move(*row));
  }
}

void Scheduler::start(RowPtr row) {
  row->sequence = prefixes_.match(row->request.space, row->history, static_cast<int64_t>(row->history.size()) - 1);
  if (row->admitted == Clock::time_point()) {  // else it was parked
    row->admitted = Clock::now();
    row->stats.queue_ms = ms_between(row->submitted, row->admitted);
    row->stats.cached_tokens = row->sequence.length();
    if (row->events.admitted) row->events.admitted(row->stats.prompt_tokens, row->stats.cached_tokens);
  }
  active_.push_back(std::move(row));
}

// Room for n more positions of a row: prefixes are given up first, then the youngest rows are parked, this one last.
bool Scheduler::reserve(Row& row, int64_t n) {
  KvCache& cache = engine_.cache();
  for (;;) {
    bool missing = false;
    for (size_t g = 0; g < engine_.page_bytes().size(); ++g)
      if (const int64_t pages = cache.missing(row.sequence, n, g); pages > 0)
        missing |= !prefixes_.make_room(g, cache.pages_free(g) + pages);
    if (!missing && cache.reserve(row.sequence, n)) return true;
    const auto youngest = std::find_if(active_.rbegin(), active_.rend(), [](const RowPtr& r) { return r->runs(); });
    const bool itself = youngest->get() == &row;
    park(**youngest);
    if (itself) return false;
  }
}

// Its pages are free for others; it is evaluated anew when there is room, to the same ids.
void Scheduler::park(Row& row) {
  engine_.cache().free(row.sequence);
  row.state = Row::State::parked;
  ++counts_.parked;
}

// The next step, with room reserved: rows that decode first, then prompts in order of admission.
void Scheduler::compose() {
  const int64_t rows_max = std::max(engine_.options().prefill_chunk, engine_.options().sequences_max);
  rows_.clear();
  inputs_.clear();
  int64_t left = rows_max;
  for (const bool decodes : {true, false})
    for (const RowPtr& row : active_) {
      if (!row->runs() || row->decodes() != decodes || left == 0) continue;
      row->taken = std::min(row->pending(), left);
      if (!reserve(*row, row->taken)) continue;
      left -= row->taken;
      rows_.push_back(row.get());
    }
  std::erase_if(rows_, [](const Row* row) { return !row->runs(); });  // parked for another one
  HEARTH_CHECK(!rows_.empty(), "{} rows, and the oldest one finds no page", active_.size());
  for (Row* row : rows_) {
    const std::span<const int32_t> history = row->history;
    inputs_.push_back({&row->sequence,
                       history.subspan(static_cast<size_t>(row->sequence.length()), static_cast<size_t>(row->taken)),
                       row->taken == row->pending() ? 1 : 0});
  }
}

bool Scheduler::step() {
  take_cancellations();
  admit();
  if (active_.empty()) return false;
  compose();
  sweep();
  std::span<float> logits;
  try {
    logits = engine_.step(inputs_);
  } catch (const Error& error) {
    for (Row* row : rows_) fail(*row, error);
    sweep();
    return true;
  } catch (const std::bad_alloc&) {
    for (Row* row : rows_) fail(*row, Error(ErrorKind::out_of_memory, "the step could not get the memory it needs"));
    sweep();
    return true;
  }
  const auto V = static_cast<size_t>(engine_.spec().V);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (inputs_[i].outputs == 0) continue;
    draw(*rows_[i], logits.first(V));
    logits = logits.subspan(V);
  }
  sweep();
  return true;
}

void Scheduler::draw(Row& row, std::span<float> logits) {
  const int64_t generated = row.stats.generated_tokens;
  if (row.first_logits == Clock::time_point()) {
    row.first_logits = Clock::now();
    row.stats.prefill_ms = ms_between(row.admitted, row.first_logits);
    keep_prompt(row);
  }
  if (generated >= row.max_tokens) return finish(row, FinishReason::length);
  Drawn drawn;
  try {
    drawn = draw_allowed(row, logits);
  } catch (const Error& error) {
    return fail(row, error);
  } catch (const std::bad_alloc&) {
    return fail(row, Error(ErrorKind::out_of_memory, "the answer's constraint could not get the memory it needs"));
  }
  if (!drawn.token) return finish(row, FinishReason::stop);
  row.history.push_back(drawn.token->id);
  if (++row.stats.generated_tokens == 1) row.stats.ttft_ms = ms_between(row.submitted, Clock::now());
  const TokenEvent event{.id = drawn.token->id, .logprob = drawn.token->logprob, .top = row.sampler.top()};
  if ((row.events.token && !row.events.token(event)) || drawn.last) return finish(row, FinishReason::stop);
  if (row.stats.generated_tokens == row.max_tokens) finish(row, FinishReason::length);
}

// The next token under the row's constraint.
Scheduler::Drawn Scheduler::draw_allowed(Row& row, std::span<float> logits) {
  const auto step = static_cast<uint64_t>(row.stats.generated_tokens);
  Constraint* constraint = row.request.constraint.get();
  if (constraint && constraint->finished()) return {};
  if (constraint) constraint->apply(logits);
  Sampled token;
  try {
    token = draw_token(row.sampler, engine_, logits, row.history, step);
  } catch (const Error& error) {
    if (!constraint || error.kind() != ErrorKind::invalid_argument) throw;
    hearth::fail(ErrorKind::invalid_argument, "no token can be drawn: the constraint and the biases leave none");
  }
  if (std::ranges::find(row.request.end_ids, token.id) != row.request.end_ids.end()) return {};
  if (constraint) constraint->accept(token.id);
  return {.token = token, .last = constraint && constraint->finished()};
}

// Whole pages of a prompt are there for others as soon as they are evaluated; the page that the row writes on is not.
void Scheduler::keep_prompt(Row& row) {
  const int64_t pages = row.stats.prompt_tokens / kPagePositions;
  if (options_.prefix_bytes == 0 || pages == 0) return;
  Sequence prompt = engine_.cache().make();
  prompt.ids.assign(row.history.begin(), row.history.begin() + pages * kPagePositions);
  for (size_t g = 0; g < prompt.pages.size(); ++g)
    prompt.pages[g].assign(row.sequence.pages[g].begin(), row.sequence.pages[g].begin() + pages);
  prefixes_.insert(row.request.space, prompt);
}

void Scheduler::finish(Row& row, FinishReason reason) {
  if (row.first_logits != Clock::time_point()) row.stats.decode_ms = ms_between(row.first_logits, Clock::now());
  if (options_.prefix_bytes > 0) prefixes_.insert(row.request.space, row.sequence);
  engine_.cache().free(row.sequence);
  prefixes_.shrink(options_.prefix_bytes);
  row.state = Row::State::ended;
  if (row.events.done) row.events.done(reason, row.stats);
}

void Scheduler::fail(Row& row, const Error& error) {
  engine_.cache().free(row.sequence);
  row.state = Row::State::ended;
  if (row.events.failed) row.events.failed(error);
}

// Rows that ended leave; parked ones wait again in front of their owner's line, the oldest first.
void Scheduler::sweep() {
  for (auto row = active_.rbegin(); row != active_.rend(); ++row)
    if ((*row)->state == Row::State::parked) {
      (*row)->state = Row::State::runs;
      const std::string owner = (*row)->request.owner;
      waiting_.push_front(owner, std::move(*row));
    }
  std::erase_if(active_, [](const RowPtr& row) { return !row || row->state == Row::State::ended; });
}

Scheduler::Counts Scheduler::counts() const {
  Counts counts = counts_;
  counts.active = static_cast<int64_t>(active_.size());
  counts.waiting = waiting_.size();
  return counts;
}

}  // namespace hearth::decode
