#include "server/front/text_workers.h"

#include <algorithm>

#include "base/at_exit.h"
#include "base/log.h"

namespace hearth::server {

TextWorkers::~TextWorkers() {
  std::vector<std::shared_ptr<WorkerLink>> links;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    links.swap(retired_);
    for (auto& [id, entry] : entries_)
      if (entry.worker) links.push_back(entry.worker);
  }
  for (const auto& link : links) link->kill();
  links.clear();
  {
    std::map<std::string, Entry> entries;
    const std::lock_guard lock(mutex_);
    entries.swap(entries_);
  }
  links_.settle(std::chrono::seconds(5));
}

void TextWorkers::acquire(const std::string& id, const hub::FoundModel& model, WorkerWaiter waiter) {
  std::shared_ptr<WorkerLink> worker;
  uint64_t serial = 0;
  try {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[id];
    entry.used = Clock::now();
    if (!entry.ready || entry.worker->is_lost()) {
      entry.model = model;
      entry.waiters.emplace_back() = std::move(waiter);
      return;
    }
    worker = entry.worker;
    serial = entry.serial;
    ++entry.leases;
  } catch (...) {
    return waiter.refused(refusal_at_hand());
  }
  give(id, serial, worker, {&waiter, 1});
}

// Without the lock, and with a lease, which ends here whatever is thrown.
void TextWorkers::give(const std::string& id, uint64_t serial, const std::shared_ptr<WorkerLink>& worker,
                       std::span<const WorkerWaiter> waiters) {
  const AtExit end_lease([&] {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(id); found != entries_.end() && found->second.serial == serial)
      --found->second.leases;
  });
  for (const WorkerWaiter& waiter : waiters) waiter.give(worker, {});
}

bool TextWorkers::idle(const Entry& entry) {
  return entry.ready && entry.leases == 0 && entry.worker->open_requests() == 0;
}

int64_t TextWorkers::open_requests() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [id, entry] : entries_)
    sum += static_cast<int64_t>(entry.waiters.size()) + (entry.worker ? entry.worker->open_requests() : 0);
  return sum;
}

void TextWorkers::reload(std::function<WorkerCommand(const hub::FoundModel&)> command,
                         std::chrono::milliseconds silence) {
  const std::lock_guard lock(mutex_);
  options_.command = std::move(command);
  options_.silence = silence;
}

void TextWorkers::tick() {
  std::vector<std::shared_ptr<WorkerLink>> retired;
  std::vector<std::pair<WorkerWaiter, Refusal>> refused;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (auto& [id, entry] : entries_) {
      if (!entry.worker) continue;
      if (!idle(entry)) entry.used = now;
      const auto since_start = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.started).count();
      const int64_t silence = entry.ready ? entry.worker->silence_ms() : since_start;
      if (options_.silence.count() > 0 && silence >= options_.silence.count()) {
        log::error("front", "{}: nothing came of its text worker {} for {} ms: it is ended", id, entry.worker->pid(),
                   silence);
        entry.worker->kill();
      }
    }
    retire_idle(now);
    auto running = std::count_if(entries_.begin(), entries_.end(), [](const auto& e) { return !!e.second.worker; });
    for (auto it = entries_.begin(); it != entries_.end();) {
      auto& [id, entry] = *it;
      if (entry.worker || running >= static_cast<std::ptrdiff_t>(options_.workers_max)) {
        ++it;
        continue;
      }
      try {
        start(id, entry);
        ++running;
        ++it;
      } catch (const Error& error) {
        log::warn("front", "{}: {}", id, error.what());
        for (WorkerWaiter& waiter : entry.waiters) refused.emplace_back(std::move(waiter), refusal_of(error));
        it = entries_.erase(it);
      }
    }
    retired.swap(retired_);
  }
  for (const auto& [waiter, refusal] : refused) waiter.refused(refusal);
  Links::end(retired);
  retired.clear();
  links_.destroy_buried();
}

// Those whose time is up; and where others wait for a place, the idle one that was asked longest ago.
void TextWorkers::retire_idle(Clock::time_point now) {
  const auto retire = [&](auto it) {
    retired_.push_back(std::move(it->second.worker));
    return entries_.erase(it);
  };
  for (auto it = entries_.begin(); it != entries_.end();)
    it = idle(it->second) && now - it->second.used >= options_.idle ? retire(it) : std::next(it);
  auto oldest = entries_.end();
  size_t running = 0;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!it->second.worker) continue;
    ++running;
    if (idle(it->second) && (oldest == entries_.end() || it->second.used < oldest->second.used)) oldest = it;
  }
  if (running >= options_.workers_max && running < entries_.size() && oldest != entries_.end()) retire(oldest);
}

// Under the lock: a worker that ends at once is not to be told of before it is known here.
void TextWorkers::start(const std::string& id, Entry& entry) {
  const uint64_t serial = entry.serial = ++serials_;
  WorkerLink::Owner owner;
  owner.loaded = [this, id, serial](const json::Object&) { loaded(id, serial); };
  owner.progress = [](int64_t, int64_t) {};
  owner.failed = [this, id, serial, path = entry.model.path](const Event& event) {
    ended(id, serial, refusal_of(event, path));
  };
  owner.lost = [this, id, serial] {
    ended(id, serial,
          {.kind = ErrorKind::device_lost,
           .message = fmt::format("the process that reads the tokenizer of {} ended", id),
           .code = "worker_lost"});
  };
  hub::FoundModel called = entry.model;
  called.name = id;  // its sentences reach clients: they name the model as clients do
  entry.started = Clock::now();
  entry.worker = links_.start(options_.command(called), std::move(owner));
}

// --- threads of the workers' links ---

void TextWorkers::loaded(const std::string& id, uint64_t serial) {
  std::vector<WorkerWaiter> waiters;
  std::shared_ptr<WorkerLink> worker;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (stopping_ || found == entries_.end() || found->second.serial != serial) return;
    Entry& entry = found->second;
    entry.ready = true;
    entry.used = Clock::now();
    waiters.swap(entry.waiters);
    worker = entry.worker;
    ++entry.leases;
  }
  give(id, serial, worker, waiters);
}

// Refused or gone: the next request starts another.
void TextWorkers::ended(const std::string& id, uint64_t serial, const Refusal& refusal) {
  std::vector<WorkerWaiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (stopping_ || found == entries_.end() || found->second.serial != serial) return;
    Entry& entry = found->second;
    retired_.push_back(std::move(entry.worker));
    if (entry.ready && !entry.waiters.empty()) {  // who came behind its end waits for the next one
      entry.worker = nullptr;
      entry.ready = false;
      entry.serial = 0;
      entry.leases = 0;
    } else {
      waiters.swap(entry.waiters);
      entries_.erase(found);
    }
  }
  log::warn("front", "{}: {}", id, refusal.message);
  for (const WorkerWaiter& waiter : waiters) waiter.refused(refusal);
}

}  // namespace hearth::server
