// The workers of Models: started, watched, and what their links tell of loads and ends; restarts with their pauses.
#include <algorithm>

#include "base/log.h"
#include "server/front/models.h"

namespace hearth::server {
namespace {

using std::chrono::seconds;

constexpr auto kFirstRestart = seconds(1), kLastRestart = seconds(60);
constexpr int kFailuresMax = 5;

std::string in_mb(int64_t bytes) { return fmt::format("{} MB", (bytes + 999'999) / 1'000'000); }

}  // namespace

void Models::watch(const std::string& id, Entry& entry) {
  const int64_t allowed = options_.watchdog.count(), silence = entry.worker->silence_ms();
  if (allowed == 0 || silence < allowed / 4) return;
  entry.worker->ask_for_sign();
  if (silence < allowed + allowed / 2) return;
  log::error("front", "{}: requests run and nothing came for {} ms: its worker {} is ended", id, silence,
             entry.worker->pid());
  entry.worker->kill();
}

void Models::start(const std::string& id, std::unique_lock<std::mutex>& lock) {
  Entry& entry = entries_.at(id);
  const int64_t room = options_.memory_budget - bytes_taken();
  Refusal refusal;
  entry.state = ModelState::loading;
  loading_ = id;
  const uint64_t serial = entry.serial = ++serials_;
  try {
    WorkerLink::Owner owner;
    owner.loaded = [this, id, serial](json::Object facts) { loaded(id, serial, std::move(facts)); };
    owner.failed = [this, id, serial, path = entry.found.path](const Event& event) {
      log::warn("front", "{} is not loaded: {}", id, event.text);
      refused(id, serial, refusal_of(event, path));
    };
    owner.lost = [this, id, serial] { lost(id, serial); };
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
    log::warn("front", "{}: {}", id, e.what());
    refusal = refusal_of(e);
  }
  lock.unlock();
  refused(id, serial, std::move(refusal));
  lock.lock();
}

// --- threads of the workers' links ---

// Adapters come before requests (models_adapters.cpp).
void Models::loaded(const std::string& id, uint64_t serial, json::Object facts) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_.at(id);
  if (stopping_ || entry.serial != serial || entry.state != ModelState::loading) return;
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
void Models::refused(const std::string& id, uint64_t serial, Refusal refusal) {
  std::vector<WorkerWaiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    if (entry.serial != serial) return;
    if (loading_ == id) loading_.clear();
    waiters.swap(entry.waiters);
    if (entry.worker) retire(id, entry);
    entry.state = ModelState::absent;
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
  for (const WorkerWaiter& waiter : waiters) waiter.refused(refusal);
}

void Models::lost(const std::string& id, uint64_t serial) {
  std::vector<WorkerWaiter> waiters;
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    if (stopping_ || draining_ || entry.serial != serial || !entry.worker) return;  // it was told to end
    if (entry.state != ModelState::ready && entry.state != ModelState::loading) return;
    const bool was_ready = entry.state == ModelState::ready;
    if (loading_ == id) loading_.clear();
    if (was_ready && (entry.worker->has_made_tokens() || Clock::now() - entry.ready_at > kLastRestart))
      entry.failures = 0;
    std::vector<WorkerWaiter> kept;
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
  for (const WorkerWaiter& waiter : waiters)
    waiter.refused({.kind = ErrorKind::device_lost, .message = problem, .code = "worker_lost"});
}

}  // namespace hearth::server
