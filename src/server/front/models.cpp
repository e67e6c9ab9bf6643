#include "server/front/models.h"

#include "base/at_exit.h"
#include "base/log.h"

namespace hearth::server {
namespace {

using std::chrono::milliseconds;

milliseconds silence_of_texts(const ModelsOptions& options) { return options.watchdog + options.watchdog / 2; }

}  // namespace

Models::Models(ModelsOptions options, hub::Store store)
    : options_(std::move(options)),
      names_(options_, std::move(store)),
      texts_({.command = options_.text_command, .idle = options_.text_idle, .silence = silence_of_texts(options_)}) {
  for (const LocalModel& model : names_.known()) add(model.id, model.found);
  if (const auto found = entries_.find(names_.default_id()); found != entries_.end()) {
    Entry& entry = found->second;
    entry.pinned = true;
    for (const std::filesystem::path& folder : options_.adapters) entry.adapters.push_back(adapter_at_start(folder));
    if (!entry.adapters.empty()) entry.adapters.front().is_default = true;
  }
  thread_ = std::thread([this] { tick(); });
}

Models::~Models() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  std::vector<std::shared_ptr<WorkerLink>> links;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, entry] : entries_)
      if (entry.worker) links.push_back(std::move(entry.worker));
    links.insert(links.end(), retired_.begin(), retired_.end());
    retired_.clear();
  }
  for (const auto& link : links) link->kill();
  links.clear();  // their threads may still ask for the lock
  links_.settle(std::chrono::seconds(5));
}

// The store is not looked at under the lock.
void Models::know(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    if (entries_.contains(id)) return;
  }
  hub::FoundModel found = names_.found(id);
  names_.know(id, found);
  const std::lock_guard lock(mutex_);
  if (!entries_.contains(id)) add(id, std::move(found));
}

void Models::add(const std::string& id, hub::FoundModel found) {
  Entry& entry = entries_[id];
  entry.rules = options_.rules(found);
  entry.pinned = entry.rules.pinned;
  entry.found = std::move(found);
}

void Models::acquire(const std::string& id, Ready ready, std::function<void(const Refusal&)> refused, Wanted wanted) {
  WorkerWaiter waiter{std::move(ready), std::move(refused)};
  std::shared_ptr<WorkerLink> worker;
  json::Object facts;
  std::optional<hub::FoundModel> text_of;
  try {
    know(id);
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    entry.used = Clock::now();
    if (draining_ || stopping_) {
      fail(ErrorKind::busy, "the server is shutting down");
    } else if (wanted == Wanted::text && !serves(entry)) {
      text_of = entry.found;
    } else if (entry.state == ModelState::failed) {
      fail(ErrorKind::corrupt_file, "{}", entry.problem);
    } else if (serves(entry)) {
      entry.unload_when_idle = false;  // if it was to go, it stays for this one
      facts = entry.facts;
      worker = entry.worker;
      ++entry.leases;
    } else {
      if (entry.state == ModelState::absent) enqueue(id, entry);
      entry.waiters.emplace_back() = std::move(waiter);
    }
  } catch (...) {
    return waiter.refused(refusal_at_hand());
  }
  if (text_of) texts_.acquire(id, *text_of, std::move(waiter));
  if (!worker) return changed_.notify_all();
  give(id, worker, facts, {&waiter, 1});
}

// Without the lock, and with a lease, which ends here whatever is thrown.
void Models::give(const std::string& id, const std::shared_ptr<WorkerLink>& worker, const json::Object& facts,
                  std::span<const WorkerWaiter> waiters) {
  const AtExit end_lease([&] {
    const std::lock_guard lock(mutex_);
    --entries_.at(id).leases;
  });
  for (const WorkerWaiter& waiter : waiters) waiter.give(worker, facts);
}

void Models::unload(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.state == ModelState::failed) {  // it may be tried again
    found->second.state = ModelState::absent;
    found->second.failures = 0;
    return;
  }
  if (found == entries_.end() || found->second.state != ModelState::ready)
    fail(ErrorKind::not_found, "{} is not loaded", id);
  found->second.unload_when_idle = true;
  changed_.notify_all();
}

void Models::pin(const std::string& id, bool pinned) {
  know(id);
  const std::lock_guard lock(mutex_);
  entries_.at(id).pinned = pinned;
}

void Models::keep_alive(const std::string& id, std::optional<milliseconds> ttl) {
  know(id);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(id);
  entry.ttl = ttl;
  entry.ttl_set = true;
}

void Models::reload(const ModelsOptions& options) {
  const std::string before = names_.default_id();
  names_.reload(options);
  const std::string now = names_.default_id();
  if (now != before) know(now);
  {
    const std::lock_guard lock(mutex_);
    options_.ttl = options.ttl;
    options_.watchdog = options.watchdog;
    options_.command = options.command;
    options_.rules = options.rules;
    for (auto& [id, entry] : entries_) {
      const ModelRules rules = options_.rules(entry.found);
      if (rules.pinned != entry.rules.pinned) entry.pinned = rules.pinned || id == now;
      entry.rules = rules;
      if (now != before && id == before) entry.pinned = rules.pinned;
      if (now != before && id == now) entry.pinned = true;
    }
  }
  texts_.reload(options.text_command, silence_of_texts(options));
  if (now == before) return;
  acquire(  // as at a start
      now, [](const std::shared_ptr<WorkerLink>&, const json::Object&) {},
      [now](const Refusal& refusal) { log::warn("front", "{} is not loaded: {}", now, refusal.message); });
}

json::Object Models::load_default(const std::function<void(int64_t, int64_t)>& progress) {
  const std::string id = names_.default_id();
  {
    const std::lock_guard lock(mutex_);
    entries_.at(id).progress = progress;
  }
  json::Object facts;
  std::optional<Refusal> refusal;
  bool ended = false;
  std::mutex mutex;
  std::condition_variable done;
  acquire(
      id,
      [&](const std::shared_ptr<WorkerLink>&, const json::Object& f) {
        const std::lock_guard lock(mutex);
        facts = f;
        ended = true;
        done.notify_all();
      },
      [&](const Refusal& r) {
        const std::lock_guard lock(mutex);
        refusal = r;
        ended = true;
        done.notify_all();
      });
  {
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return ended; });
  }
  const std::lock_guard lock(mutex_);
  entries_.at(id).progress = nullptr;
  if (refusal) throw Error(refusal->kind, refusal->message);
  return facts;
}

}  // namespace hearth::server
