// The pool's thread of Models: who is loaded next, who goes to make room or when its time is over, and the end.
#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "server/front/models.h"

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = milliseconds(100);
constexpr auto kServesFirst = seconds(2);                 // a freshly loaded model, before another may push it out
constexpr int64_t kSignMs = 500, kSilentAtEndMs = 3'500;  // when the server ends, a wedged engine is not waited for

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
      const auto ttl = ttl_of(entry);
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
      Links::end(retired);
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
  queue_.push_front(needy->first);
  needy->second.needs_room = false;
  needy->second.state = ModelState::queued;
}

// When nobody needs room any more, those that yielded for it go on.
void Models::hand_over(std::unique_lock<std::mutex>& lock) {
  const bool needed = std::any_of(entries_.begin(), entries_.end(), [](const auto& e) { return e.second.needs_room; });
  if (needed || !loading_.empty() || !queue_.empty()) return;
  for (auto& [id, entry] : entries_) {
    if (!entry.yields) continue;
    entry.yields = false;
    if (!entry.waiters.empty() && serves(entry)) serve_waiters(id, entry, lock);
  }
}

// Gives the worker to all who wait for it, without the lock.
void Models::serve_waiters(const std::string& id, Entry& entry, std::unique_lock<std::mutex>& lock) {
  const json::Object facts = entry.facts;
  const std::shared_ptr<WorkerLink> worker = entry.worker;
  std::vector<WorkerWaiter> waiters;
  waiters.swap(entry.waiters);
  ++entry.leases;
  lock.unlock();
  changed_.notify_all();
  give(id, worker, facts, waiters);
  lock.lock();
}

void Models::start_next(std::unique_lock<std::mutex>& lock) {
  if (draining_ || !loading_.empty() || queue_.empty() || !retired_.empty()) return;
  const std::string id = queue_.front();
  queue_.pop_front();
  start(id, lock);
}

// A worker that has ended, and whose end is about to be told, gets no request: those wait for the next one.
bool Models::serves(const Entry& entry) {
  return entry.state == ModelState::ready && entry.worker && !entry.yields && !entry.worker->is_lost();
}

// How long it stays when nobody asks; nullopt: for good.
std::optional<milliseconds> Models::ttl_of(const Entry& entry) const {
  if (entry.pinned) return std::nullopt;
  return entry.ttl_set ? entry.ttl : entry.rules.ttl.value_or(options_.ttl);
}

// Those that wait while it yields do not keep it.
bool Models::idle(const Entry& entry) const {
  return entry.state == ModelState::ready && entry.leases == 0 && entry.worker->open_requests() == 0;
}

int64_t Models::bytes_taken(bool by_pinned_alone) const {
  int64_t sum = 0;
  for (const auto& [id, entry] : entries_) {
    if (entry.state != ModelState::ready || (by_pinned_alone && !entry.pinned)) continue;
    const json::Value* bytes = entry.facts.find("memory_bytes");
    sum += bytes ? bytes->as_int("memory_bytes") : 0;
  }
  return sum;
}

// It may be asked to make room: neither pinned nor freshly loaded.
bool Models::may_go(const Entry& entry, Clock::time_point now) const {
  return entry.state == ModelState::ready && !entry.pinned && now - entry.ready_at >= kServesFirst;
}

void Models::enqueue(const std::string& id, Entry& entry) {
  queue_.push_back(id);  // first: it may throw
  entry.state = ModelState::queued;
}

// Its worker ends on the pool's thread. Who waits for it waits for the next one.
void Models::retire(const std::string& id, Entry& entry) {
  retired_.push_back(std::move(entry.worker));
  entry.worker = nullptr;
  entry.state = ModelState::absent;
  entry.unload_when_idle = entry.yields = false;
  entry.ttl_set = false;  // asked of the model that was loaded, not of the next one
  if (!entry.waiters.empty()) enqueue(id, entry);
}

// A load is not waited for, and neither is a model that others hold up.
void Models::refuse_waiters(std::unique_lock<std::mutex>& lock) {
  std::vector<WorkerWaiter> waiters;
  for (auto& [id, entry] : entries_) {
    std::move(entry.waiters.begin(), entry.waiters.end(), std::back_inserter(waiters));
    entry.waiters.clear();
    if (entry.state == ModelState::loading && entry.worker) entry.worker->kill();
  }
  queue_.clear();
  lock.unlock();
  for (const WorkerWaiter& waiter : waiters) waiter.refused({ErrorKind::busy, "the server is shutting down", ""});
  lock.lock();
}

void Models::drain(milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  std::unique_lock lock(mutex_);
  draining_ = true;
  refuse_waiters(lock);
  for (;;) {
    bool open = false;
    for (auto& [id, entry] : entries_) {
      if (!entry.worker || entry.worker->open_requests() == 0) continue;
      open = true;
      const int64_t silence = entry.worker->silence_ms();
      if (silence >= kSignMs) entry.worker->ask_for_sign();
      if (silence >= kSilentAtEndMs) entry.worker->kill();
    }
    if ((!open && texts_.open_requests() == 0) || Clock::now() >= deadline) break;
    changed_.wait_for(lock, milliseconds(20));
  }
  // What their caches keep on disk is written first.
  std::vector<std::shared_ptr<WorkerLink>> workers;
  for (const auto& [id, entry] : entries_)
    if (entry.worker) workers.push_back(entry.worker);
  lock.unlock();
  for (const auto& worker : workers) worker->drain();
  for (const auto& worker : workers)
    worker->wait_end(std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(deadline - Clock::now())));
}

}  // namespace hearth::server
