// Requests in and out of the scheduler: who comes, waits, is held, goes. scheduler_step.cpp: what a step does.
#include "decode/scheduler.h"

#include <algorithm>
#include <utility>

#include "decode/scheduler_row.h"

namespace hearth::decode {
namespace {

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Scheduler::Scheduler(Engine& engine, SchedulerOptions options)
    : engine_(engine), options_(options), prefixes_(engine.cache(), engine.page_bytes(), *options.clock) {
  if (PrefixDisk* disk = options.disk)
    prefixes_.on_evict([disk](std::string_view space, const Sequence& s) { disk->keep(space, s); });
  if (engine.options().gathered_max < engine.options().sequences_max)
    hearth::fail(ErrorKind::invalid_argument, "{} rows decode together, logits are gathered for {}",
                 engine.options().sequences_max, engine.options().gathered_max);
}

Scheduler::~Scheduler() {
  const auto all = [](const Row&) { return true; };
  take_out(all, [&](RowPtr row) { finish(*row, FinishReason::cancelled); });
  for (RowPtr& row : active_) finish(*row, FinishReason::cancelled);
  settle_prompts();
}

Scheduler::RowPtr Scheduler::make_row(Request request, Events events) {
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

  request.adapter = engine_.adapter_slot(request.adapter);
  Sampler sampler(request.sampler, engine_.spec().V, joined(request.end_ids, request.newline_ids),
                  request.top_logprobs);
  // The last token drawn need not be evaluated, so prompt + answer may pass the context by one.
  const int64_t max_tokens = std::min(request.max_tokens, engine_.context() - prompt + 1);
  auto row = std::make_unique<Row>(Row{.id = 0,
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
  return row;
}

void Scheduler::check_queue(int64_t more) const {
  if (const int64_t waiting = waiting_rows(); waiting + more > options_.waiting_max)
    hearth::fail(ErrorKind::busy, "{} requests wait already", waiting);
}

int64_t Scheduler::waiting_rows() const {
  int64_t waiting = waiting_.size();
  for (const auto& prompt : prompts_) waiting += static_cast<int64_t>(prompt->siblings.size());
  return waiting;
}

RequestId Scheduler::submit(Request request, Events events) {
  RowPtr row = make_row(std::move(request), std::move(events));
  check_queue(1);
  const RequestId id = row->id = next_id_++;
  const std::string owner = row->request.owner;
  engine_.use_adapter(row->request.adapter, 1);
  waiting_.push(owner, std::move(row));
  ++counts_.submitted;
  return id;
}

std::vector<RequestId> Scheduler::submit_together(std::vector<Submission> answers) {
  if (answers.empty()) hearth::fail(ErrorKind::invalid_argument, "no answer is asked for");
  std::vector<RowPtr> rows;
  for (Submission& answer : answers) {
    rows.push_back(make_row(std::move(answer.request), std::move(answer.events)));
    const Request &first = rows.front()->request, &other = rows.back()->request;
    if (other.prompt != first.prompt || other.space != first.space || other.owner != first.owner ||
        other.adapter != first.adapter)
      hearth::fail(ErrorKind::invalid_argument, "answer {} has another prompt, space, owner or adapter than the first",
                   rows.size());
  }
  check_queue(static_cast<int64_t>(rows.size()));
  auto prompt = std::make_unique<SharedPrompt>();
  prompt->sequence = engine_.cache().make();
  prompt->users = static_cast<int64_t>(rows.size());
  prompt->evaluates = rows.front().get();
  std::vector<RequestId> ids;
  for (RowPtr& row : rows) {
    ids.push_back(row->id = next_id_++);
    row->shared = prompt.get();
  }
  prompt->siblings.assign(std::make_move_iterator(rows.begin() + 1), std::make_move_iterator(rows.end()));
  engine_.use_adapter(rows.front()->request.adapter, static_cast<int>(prompt->users));
  counts_.submitted += prompt->users;
  prompts_.push_back(std::move(prompt));
  const std::string owner = rows.front()->request.owner;
  waiting_.push(owner, std::move(rows.front()));
  return ids;
}

// Hands over, and forgets, every such row that is not in the batch.
void Scheduler::take_out(const std::function<bool(const Row&)>& which, const std::function<void(RowPtr)>& give) {
  waiting_.remove([&](const RowPtr& row) { return which(*row); }, give);
  const auto from = [&](std::vector<RowPtr>& rows) {
    for (RowPtr& row : rows)
      if (which(*row)) give(std::move(row));
    std::erase(rows, nullptr);
  };
  from(held_);
  for (const auto& prompt : prompts_) from(prompt->siblings);
}

void Scheduler::cancel(RequestId id) { cancelled_.push_back(id); }

void Scheduler::take_cancellations() {
  if (cancelled_.empty()) return;
  const auto gone = [&](const Row& row) {
    return std::find(cancelled_.begin(), cancelled_.end(), row.id) != cancelled_.end();
  };
  const auto end = [&](Row& row) {
    ++counts_.cancelled;
    finish(row, FinishReason::cancelled);
  };
  take_out(gone, [&](RowPtr row) { end(*row); });
  for (RowPtr& row : active_)
    if (gone(*row)) end(*row);
  cancelled_.clear();
  sweep();
}

void Scheduler::hold(RequestId id) {
  for (const auto& prompt : prompts_)
    for (RowPtr& row : prompt->siblings)
      if (row->id == id) row->held = true;
  const auto keep = [&](RowPtr row) {
    row->held = true;
    leave_prompt(*row);  // the others do not wait for its reader; started anew, it finds what they evaluated
    row->restore.reset();
    held_.push_back(std::move(row));
  };
  waiting_.remove([&](const RowPtr& row) { return row->id == id; }, keep);
  for (RowPtr& row : active_)
    if (row->id == id) keep(std::move(row));
  std::erase(active_, nullptr);
  for (RowPtr& row : held_)
    if (row->id == id) row->held = true;  // released, and not back in the batch yet
  settle_prompts();
}

void Scheduler::release(RequestId id) {
  for (RowPtr& row : held_)
    if (row->id == id) row->held = false;  // admit() brings it back
  for (const auto& prompt : prompts_)
    for (RowPtr& row : prompt->siblings)
      if (row->id == id) row->held = false;
  settle_prompts();
}

// The row names its prompt no longer; settle_prompts() sees to the others.
void Scheduler::leave_prompt(Row& row) {
  SharedPrompt* prompt = std::exchange(row.shared, nullptr);
  if (!prompt) return;
  if (prompt->evaluates == &row) prompt->evaluates = nullptr;
  --prompt->users;
}

// Prompts that nobody evaluates any more are handed to the first that is not held; those without users go.
void Scheduler::settle_prompts() {
  for (auto& prompt : prompts_) {
    if (prompt->users == 0) {
      engine_.cache().free(prompt->sequence);
      prompt.reset();
      continue;
    }
    if (prompt->state != SharedPrompt::State::cold || prompt->evaluates) continue;
    const auto next = std::ranges::find_if(prompt->siblings, [](const RowPtr& row) { return !row->held; });
    if (next == prompt->siblings.end()) continue;
    RowPtr row = std::move(*next);
    prompt->siblings.erase(next);
    prompt->evaluates = row.get();
    const std::string owner = row->request.owner;
    waiting_.push_front(owner, std::move(row));
  }
  std::erase(prompts_, nullptr);
}

// The prompt is evaluated, and these are its logits: its other answers may start.
void Scheduler::share_prompt(Row& row, std::span<const float> logits) {
  SharedPrompt* prompt = row.shared;
  leave_prompt(row);
  if (!prompt) return;
  try {
    prompt->logits.assign(logits.begin(), logits.end());
    prompt->sequence = engine_.cache().fork(row.sequence);
    prompt->state = SharedPrompt::State::ready;
  } catch (const std::bad_alloc&) {
    prompt->state = SharedPrompt::State::given_up;
  }
  for (auto sibling = prompt->siblings.rbegin(); sibling != prompt->siblings.rend(); ++sibling) {
    const std::string owner = (*sibling)->request.owner;
    if ((*sibling)->held) held_.push_back(std::move(*sibling));
    else waiting_.push_front(owner, std::move(*sibling));
  }
  prompt->siblings.clear();
}

// The pool holds every active row's prompt and the part of its answer that is reserved, and this row's too. What the
// prefix tree refers to, and shared prompts and held rows keep, counts as free: it is given up when it is in the way.
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

// Rows that were held come first, and nobody overtakes them. Returns whether any row started.
bool Scheduler::admit() {
  const auto room = [&] { return std::cmp_less(active_.size(), engine_.options().sequences_max); };
  const auto may_start = [&](const RowPtr& row) { return active_.empty() || fits(*row); };
  bool started = false;
  for (RowPtr& row : held_) {
    if (row->held) continue;
    if (row->sequence.length() == 0) {
      const std::string owner = row->request.owner;
      waiting_.push_front(owner, std::move(row));
    } else if (room() && may_start(row)) {
      active_.push_back(std::move(row));
      started = true;
    }
  }
  std::erase(held_, nullptr);
  const auto comes_back = [](const RowPtr& row) { return !row->held; };
  while (room() && std::ranges::none_of(held_, comes_back)) {
    std::optional<RowPtr> row = waiting_.take(may_start);
    if (!row) break;
    start(std::move(*row));
    started = true;
  }
  return started;
}

void Scheduler::start(RowPtr row) {
  SharedPrompt* prompt = row->shared && row->shared->evaluates != row.get() ? row->shared : nullptr;
  const bool evaluated = prompt && prompt->state == SharedPrompt::State::ready;
  row->sequence =
      evaluated ? engine_.cache().fork(prompt->sequence)
                : prefixes_.match(row->request.space, row->history, static_cast<int64_t>(row->history.size()) - 1);
  if (row->admitted == Clock::time_point()) {  // else it was parked
    row->admitted = Clock::now();
    row->stats.queue_ms = ms_between(row->submitted, row->admitted);
  }
  if (!evaluated) begin_restore(*row);
  if (!row->restore) announce(*row);
  active_.push_back(std::move(row));
  if (!prompt) return;
  Row& last = *active_.back();
  leave_prompt(last);
  if (!evaluated) return;
  logits_ = prompt->logits;
  if (!prepare_draw(last, logits_)) return;
  draw(last);
  deliver(last);
}

void Scheduler::announce(Row& row) {
  if (std::exchange(row.announced, true)) return;
  row.stats.cached_tokens = row.sequence.length();
  if (row.events.admitted) row.events.admitted(row.stats.prompt_tokens, row.stats.cached_tokens);
}

// Where the disk has more of a row's ids than the tree, and there are pages without parking anybody.
void Scheduler::begin_restore(Row& row) {
  PrefixDisk* disk = options_.disk;
  if (!disk) return;
  const std::string& space = row.request.space;
  const int64_t most = static_cast<int64_t>(row.history.size()) - 1;
  const int64_t length = disk->match_length(space, row.history, most);
  if (length < row.sequence.length() + graph::kPagePositions) return;
  for (size_t g = 0; g < engine_.page_bytes().size(); ++g)
    while (!prefixes_.make_room(g, engine_.cache().pages_seen(g, length)))
      if (!give_up_prompt() && !disk->give_up_pages() && !park_held()) return;
  row.restore = disk->restore(space, row.history, most);
  if (row.restore) engine_.cache().free(row.sequence);
}

// Some megabytes a step, so that the others decode on.
void Scheduler::advance_restores() {
  constexpr int64_t kBytes = 16 << 20;
  for (const RowPtr& row : active_) {
    if (!row->restore) continue;
    try {
      if (!row->restore->advance(kBytes)) return;
      row->sequence = row->restore->take();
      row->restore.reset();
    } catch (const Error& error) {
      options_.disk->drop(*row->restore, error);
      row->restore.reset();
      row->sequence = prefixes_.match(row->request.space, row->history, static_cast<int64_t>(row->history.size()) - 1);
    }
    announce(*row);
    return;
  }
}

std::optional<std::chrono::nanoseconds> Scheduler::demote() {
  using namespace std::chrono_literals;
  constexpr int kLooksMax = static_cast<int>(PrefixDisk::kQueueMax);
  PrefixDisk* disk = options_.disk;
  if (!disk || options_.demote_idle <= 0ns || prefixes_.entries() == 0) return std::nullopt;
  const std::chrono::nanoseconds now = options_.clock->monotonic();
  if (now >= demotes_at_) {
    int looks = 0;
    prefixes_.demote(options_.demote_idle, [&](std::string_view space, const Sequence& s) {
      using enum PrefixTree::Demotion;
      if (!disk->takes(s)) return stays;
      if (looks++ == kLooksMax) return enough;
      if (disk->holds(space, s)) return goes;
      disk->keep(space, s);
      return stays;
    });
    demotes_at_ = now + std::clamp<std::chrono::nanoseconds>(options_.demote_idle / 8, 100ms, 10s);
  }
  return demotes_at_ - now;
}

Scheduler::Counts Scheduler::counts() const {
  Counts counts = counts_;
  counts.active = static_cast<int64_t>(active_.size());
  counts.waiting = waiting_rows();
  counts.held = static_cast<int64_t>(held_.size());
  return counts;
}

}  // namespace hearth::decode
