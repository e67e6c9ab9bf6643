// One step of the scheduler: what it evaluates, where the pages come from, what is drawn.
#include <algorithm>
#include <new>
#include <utility>

#include "decode/scheduler.h"
#include "decode/scheduler_row.h"

namespace hearth::decode {

using graph::kPagePositions;

// Room for n more positions of a row: prefixes are given up first, then shared prompts, writes to the disk and pages of
// held rows; then the youngest rows are parked, this one last.
bool Scheduler::reserve(Row& row, int64_t n) {
  KvCache& cache = engine_.cache();
  for (;;) {
    bool missing = false;
    for (size_t g = 0; g < engine_.page_bytes().size(); ++g)
      if (const int64_t pages = cache.missing(row.sequence, n, g); pages > 0)
        missing |= !prefixes_.make_room(g, cache.pages_free(g) + pages);
    if (!missing && cache.reserve(row.sequence, n)) return true;
    if (give_up_prompt() || (options_.disk && options_.disk->give_up_pages()) || park_held()) continue;
    const auto youngest = std::find_if(active_.rbegin(), active_.rend(), [](const RowPtr& r) { return r->runs(); });
    const bool itself = youngest->get() == &row;
    park(**youngest);
    if (itself) return false;
  }
}

// Its pages are free for others; it is evaluated anew when there is room, to the same ids.
void Scheduler::park(Row& row) {
  row.restore.reset();
  engine_.cache().free(row.sequence);
  row.state = Row::State::parked;
  ++counts_.parked;
}

// The sequence of a shared prompt, oldest first; those of its answers that come later evaluate it themselves.
bool Scheduler::give_up_prompt() {
  for (const auto& prompt : prompts_)
    if (prompt->state == SharedPrompt::State::ready) {
      engine_.cache().free(prompt->sequence);
      prompt->logits = {};
      prompt->state = SharedPrompt::State::given_up;
      return true;
    }
  return false;
}

// The held row that came last and has pages.
bool Scheduler::park_held() {
  for (auto row = held_.rbegin(); row != held_.rend(); ++row)
    if ((*row)->sequence.length() > 0) {
      engine_.cache().free((*row)->sequence);
      ++counts_.parked;
      return true;
    }
  return false;
}

// The next step, with room reserved: rows that decode first, then prompts in order of admission.
void Scheduler::compose() {
  const int64_t rows_max = std::max(engine_.options().prefill_chunk, engine_.options().sequences_max);
  rows_.clear();
  inputs_.clear();
  int64_t left = rows_max;
  for (const bool decodes : {true, false})
    for (const RowPtr& row : active_) {
      if (!row->steps() || row->decodes() != decodes || left == 0) continue;
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
                       row->taken == row->pending() ? 1 : 0, row->request.adapter});
  }
}

bool Scheduler::step() {
  if (options_.disk) options_.disk->collect();
  if (std::exchange(request_ended_, false)) demote();
  take_cancellations();
  const bool started = admit();
  sweep();  // answers to an evaluated prompt draw as they start
  if (active_.empty()) return started;
  advance_restores();
  if (std::ranges::none_of(active_, [](const RowPtr& row) { return row->steps(); })) return true;
  const Clock::time_point start = Clock::now();
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
  const Clock::time_point evaluated = Clock::now();
  const auto V = static_cast<size_t>(engine_.spec().V);
  drawing_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (inputs_[i].outputs == 0) continue;
    if (prepare_draw(*rows_[i], logits.first(V))) drawing_.push_back(rows_[i]);
    logits = logits.subspan(V);
  }
  const Clock::time_point prepared = Clock::now();
  engine_.executor().for_each(static_cast<int64_t>(drawing_.size()),
                              [this](int64_t i) { draw(*drawing_[static_cast<size_t>(i)]); });
  counts_.sampling_ms += ms_between(prepared, Clock::now());
  for (Row* row : drawing_) deliver(*row);
  counts_.evaluating_ms += ms_between(start, evaluated);
  sweep();
  return true;
}

// What comes before a draw, one row after the other. False: there is none.
bool Scheduler::prepare_draw(Row& row, std::span<float> logits) {
  if (row.first_logits == Clock::time_point()) {
    row.first_logits = Clock::now();
    row.stats.prefill_ms = ms_between(row.admitted, row.first_logits);
    if (row.events.prompt_logits) row.events.prompt_logits(logits);
    keep_prompt(row);
    share_prompt(row, logits);
  }
  if (row.stats.generated_tokens >= row.max_tokens) {
    finish(row, FinishReason::length);
    return false;
  }
  row.logits = logits;
  if (!row.request.constraint) return true;
  bool finished = false;
  const bool fine = guarded(row, [&] {
    finished = row.request.constraint->finished();
    if (!finished) row.request.constraint->apply(logits);
  });
  if (finished) finish(row, FinishReason::stop);
  return fine && !finished;
}

// On any thread, beside other rows: touches this one alone.
void Scheduler::draw(Row& row) const noexcept {
  row.error.reset();
  const auto step = static_cast<uint64_t>(row.stats.generated_tokens);
  try {
    row.token = draw_token(row.sampler, engine_, row.request.adapter, row.logits, row.history, step);
  } catch (const Error& error) {
    if (row.request.constraint && error.kind() == ErrorKind::invalid_argument)
      row.error = Error(error.kind(), "no token can be drawn: the constraint and the biases leave none");
    else row.error = error;
  } catch (const std::bad_alloc&) {
    row.error = Error(ErrorKind::out_of_memory, "the answer's next token could not get the memory it needs");
  }
}

// What was drawn becomes part of the answer, or ends it.
void Scheduler::deliver(Row& row) {
  if (row.error) return fail(row, *row.error);
  if (std::ranges::find(row.request.end_ids, row.token.id) != row.request.end_ids.end())
    return finish(row, FinishReason::stop);
  bool last = false;
  Constraint* constraint = row.request.constraint.get();
  const auto accept = [&] {
    constraint->accept(row.token.id);
    last = constraint->finished();
  };
  if (constraint && !guarded(row, accept)) return;
  row.history.push_back(row.token.id);
  if (++row.stats.generated_tokens == 1) row.stats.ttft_ms = ms_between(row.submitted, Clock::now());
  const TokenEvent event{.id = row.token.id, .logprob = row.token.logprob, .top = row.sampler.top()};
  if ((row.events.token && !row.events.token(event)) || last) return finish(row, FinishReason::stop);
  if (row.stats.generated_tokens == row.max_tokens) finish(row, FinishReason::length);
}

// Calls into the row's constraint; what it throws ends the row. False: it threw.
template <class Call>
bool Scheduler::guarded(Row& row, const Call& call) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    fail(row, error);
  } catch (const std::bad_alloc&) {
    fail(row, Error(ErrorKind::out_of_memory, "the answer's constraint could not get the memory it needs"));
  }
  return false;
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
  prefixes_.shrink(options_.prefix_bytes);
}

void Scheduler::finish(Row& row, FinishReason reason) {
  if (row.first_logits != Clock::time_point()) row.stats.decode_ms = ms_between(row.first_logits, Clock::now());
  row.restore.reset();
  if (options_.disk) options_.disk->keep(row.request.space, row.sequence);
  if (options_.prefix_bytes > 0) prefixes_.insert(row.request.space, row.sequence);
  engine_.cache().free(row.sequence);
  prefixes_.shrink(options_.prefix_bytes);
  leave_prompt(row);
  engine_.use_adapter(row.request.adapter, -1);
  row.state = Row::State::ended;
  request_ended_ = true;
  if (row.events.done) row.events.done(reason, row.stats);
}

void Scheduler::fail(Row& row, const Error& error) {
  row.restore.reset();
  engine_.cache().free(row.sequence);
  leave_prompt(row);
  engine_.use_adapter(row.request.adapter, -1);
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
  settle_prompts();
}

}  // namespace hearth::decode
