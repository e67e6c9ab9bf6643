// The pool's thread of Models, and what the links of its workers tell it: loads, evictions, restarts.
#include "server/front/models.h"

#include <algorithm>

#include "base/log.h"

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = milliseconds(100);
constexpr auto kFirstRestart = seconds(1), kLastRestart = seconds(60);
constexpr int kFailuresMax = 5;

std::string in_mb(int64_t bytes) { return fmt::format("{} MB", (bytes + 999'999) / 1'000'000); }

}  // namespace

void Models::tick() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = Clock::now();
    for (auto& [id, entry] : entries_) {
      if (entry.state == ModelState::ready && !idle(entry)) entry.used = now;
      if (entry.state == ModelState::ready) watch(id, entry);
      if (entry.state == ModelState::waits_for_restart && !entry.needs_room && now >= entry.restart_at)
        enqueue(id, entry);
      if (!idle(entry) || entry.yields) continue;
      const auto ttl = entry.pinned    ? std::nullopt
                       : entry.ttl_set ? entry.ttl
                                       : std::optional(entry.rule_ttl.value_or(options_.ttl));
      if (entry.unload_when_idle || (ttl && now - entry.used >= *ttl)) {
        log::info("front", "{} is unloaded", id);
        retire(id, entry);
      }
    }
    make_room(now);
    start_next(lock);
    if (!retired_.empty()) {
      std::vector<std::shared_ptr<WorkerLink>> retired;
      retired.swap(retired_);
      lock.unlock();
      for (const auto& link : retired) Links::end(link);
      retired.clear();
      links_.destroy_buried();
      lock.lock();
      continue;  // what waits for their memory may start now
    }
    hand_over(lock);
    lock.unlock();
    links_.destroy_buried();
    texts_.tick();
    lock.lock();
    changed_.wait_for(lock, kTick);
  }
}

void Models::watch(const std::string& id, Entry& entry) {
  const int64_t allowed = options_.watchdog.count(), silence = entry.worker->silence_ms();
  if (allowed == 0 || silence < allowed / 4) return;
  entry.worker->ask_for_sign();
  if (silence < allowed + allowed / 2) return;
  log::error("front", "{}: requests run and nothing came for {} ms: its worker {} is ended", id, silence,
             entry.worker->pid());
  entry.worker->kill();
}

// One model needs room: the idle one that was used longest ago goes. Where all are busy, one takes no new requests
// until it is idle, so that two clients that alternate both come to their turns.
void Models::make_room(Clock::time_point now) {
  const auto needy = std::find_if(entries_.begin(), entries_.end(), [](const auto& e) { return e.second.needs_room; });
  if (needy == entries_.end() || !retired_.empty() || !loading_.empty()) return;
  std::string best;
  bool others = false;
  for (const auto& [id, entry] : entries_) {
    if (entry.state != ModelState::ready || entry.pinned) continue;
    others = true;
    if (!may_go(entry, now)) continue;
    const auto rank = [&](const Entry& e) { return std::pair(!idle(e), e.used); };
    if (best.empty() || rank(entry) < rank(entries_.at(best))) best = id;
  }
  if (!best.empty() && !idle(entries_.at(best))) {
    const bool one_yields =
        std::any_of(entries_.begin(), entries_.end(), [](const auto& e) { return e.second.yields; });
    if (!one_yields) entries_.at(best).yields = true;
    return;
  }
  if (best.empty() && others) return;  // until the fresh one has served
  if (!best.empty()) {
    log::info("front", "{} makes room for {}", best, needy->first);
    retire(best, entries_.at(best));
  }
  // Before those that were pushed out for it.
  needy->second.needs_room = false;
  needy->second.state = ModelState::queued;
  queue_.push_front(needy->first);
}

// When nobody needs room any more, those that yielded for it go on.
void Models::hand_over(std::unique_lock<std::mutex>& lock) {
  const bool needed = std::any_of(entries_.begin(), entries_.end(), [](const auto& e) { return e.second.needs_room; });
  if (needed || !loading_.empty() || !queue_.empty()) return;
  for (auto& [id, entry] : entries_) {
    if (!entry.yields) continue;
    entry.yields = false;
    if (!entry.waiters.empty()) serve_waiters(id, entry, lock);
  }
}

// Gives the worker to all who wait for it, without the lock.
void Models::serve_waiters(const std::string& id, Entry& entry, std::unique_lock<std::mutex>& lock) {
  std::vector<Waiter> waiters;
  waiters.swap(entry.waiters);
  const std::shared_ptr<WorkerLink> worker = entry.worker;
  const json::Object facts = entry.facts;
  entry.leases += static_cast<int64_t>(waiters.size());
  lock.unlock();
  changed_.notify_all();
  for (const Waiter& waiter : waiters) {
    waiter.ready(worker, facts);
    const std::lock_guard guard(mutex_);
    --entries_.at(id).leases;
  }
  lock.lock();
}

void Models::start_next(std::unique_lock<std::mutex>& lock) {
  if (draining_ || !loading_.empty() || queue_.empty() || !retired_.empty()) return;
  const std::string id = queue_.front();
  queue_.pop_front();
  start(id, lock);
}

void Models::start(const std::string& id, std::unique_lock<std::mutex>& lock) {
  Entry& entry = entries_.at(id);
  const int64_t room = options_.memory_budget - bytes_taken();
  Event error;
  entry.state = ModelState::loading;
  loading_ = id;
  try {
    WorkerLink::Owner owner;
    owner.loaded = [this, id](json::Object facts) { loaded(id, std::move(facts)); };
    owner.failed = [this, id](const Event& event) { refused(id, event); };
    owner.lost = [this, id] { lost(id); };
    owner.progress = [this, id](int64_t done, int64_t total) {
      std::function<void(int64_t, int64_t)> progress;
      {
        const std::lock_guard guard(mutex_);
        progress = entries_.at(id).progress;
      }
      if (progress) progress(done, total);
    };
    hub::FoundModel called = entry.found;
    called.name = id;  // a worker's sentences reach clients: they name the model as clients do
    // Under the lock: a worker that ends at once is not to be told of before it is known here.
    entry.worker = links_.start(options_.command(called, std::max<int64_t>(room, 1)), std::move(owner));
    return;
  } catch (const Error& e) {
    error.text = e.what();
    error.reason = name_of(e.kind());
  }
  lock.unlock();
  refused(id, error);
  lock.lock();
}

// --- threads of the workers' links ---

// Adapters come before requests (models_adapters.cpp).
void Models::loaded(const std::string& id, json::Object facts) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_.at(id);
  if (stopping_ || entry.state != ModelState::loading) return;
  entry.facts = std::move(facts);
  for (MountedAdapter& adapter : entry.adapters) adapter.on_worker = false;
  lock.unlock();
  mount_next(id);
}

void Models::serve_loaded(const std::string& id, Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.state = ModelState::ready;
  entry.used = entry.ready_at = Clock::now();
  entry.problem.clear();
  loading_.clear();
  serve_waiters(id, entry, lock);
}

// The load was refused. Where memory is short and other models hold some, it is tried again when one has gone; but one
// that needs more than all of them together could give is refused, and they stay.
void Models::refused(const std::string& id, const Event& event) {
  std::vector<Waiter> waiters;
  Refusal refusal;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    if (loading_ == id) loading_.clear();
    waiters.swap(entry.waiters);
    if (entry.worker) retire(id, entry);
    entry.state = ModelState::absent;
    log::warn("front", "{} is not loaded: {}", id, event.text);
    refusal = refusal_of(event, entry.found.path);
    const int64_t by_pinned = bytes_taken(true), usable = options_.memory_budget - by_pinned;
    const bool never_fits = refusal.needed_bytes > usable;
    if (never_fits && (by_pinned > 0 || refusal.usable_bytes != usable)) {
      refusal.message =
          fmt::format("{} needs {} of memory and could have {}", id, in_mb(refusal.needed_bytes), in_mb(usable));
      if (by_pinned > 0)
        refusal.message +=
            fmt::format(": pinned models hold {} of {}", in_mb(by_pinned), in_mb(options_.memory_budget));
      refusal.usable_bytes = usable;
    }
    entry.problem = refusal.message;
    const bool others = std::any_of(entries_.begin(), entries_.end(), [](const auto& other) {
      return other.second.state == ModelState::ready && !other.second.pinned;
    });
    if (refusal.kind == ErrorKind::out_of_memory && others && !never_fits) {
      entry.state = ModelState::waits_for_restart;
      entry.needs_room = true;
      waiters.swap(entry.waiters);
    }
  }
  changed_.notify_all();
  for (const Waiter& waiter : waiters) waiter.refused(refusal);
}

void Models::lost(const std::string& id) {
  std::vector<Waiter> waiters;
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    if (stopping_ || draining_ || !entry.worker) return;  // it was told to end
    if (entry.state != ModelState::ready && entry.state != ModelState::loading) return;
    const bool was_ready = entry.state == ModelState::ready;
    if (loading_ == id) loading_.clear();
    if (was_ready && (entry.worker->has_made_tokens() || Clock::now() - entry.ready_at > kLastRestart))
      entry.failures = 0;
    std::vector<Waiter> kept;
    kept.swap(entry.waiters);
    retire(id, entry);
    entry.waiters.swap(kept);
    ++entry.failures;
    ++entry.restarts;
    entry.problem = was_ready ? "its worker process ended" : "its worker process ended while it loaded";
    if (entry.failures >= kFailuresMax) {
      entry.state = ModelState::failed;
      entry.problem = fmt::format("{} failed {} times in a row: {}", id, entry.failures, entry.problem);
      problem = entry.problem;
      waiters.swap(entry.waiters);
    } else {
      entry.state = ModelState::waits_for_restart;
      const auto pause = std::min<Clock::duration>(kLastRestart, kFirstRestart * (1 << (entry.failures - 1)));
      entry.restart_at = Clock::now() + (entry.failures == 1 ? Clock::duration::zero() : pause);
    }
    log::error("front", "{}: {}", id, entry.problem);
  }
  changed_.notify_all();
  for (const Waiter& waiter : waiters)
    waiter.refused({.kind = ErrorKind::device_lost, .message = problem, .code = "worker_lost"});
}

}  // namespace hearth::server
