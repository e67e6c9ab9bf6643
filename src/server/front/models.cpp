#include "server/front/models.h"

#include <algorithm>

#include "base/log.h"

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = milliseconds(100), kEndOfRetired = milliseconds(5'000);
constexpr auto kFirstRestart = seconds(1), kLastRestart = seconds(60);
constexpr auto kServesFirst = seconds(2);  // a freshly loaded model, before another may push it out
constexpr int kFailuresMax = 5;
constexpr int64_t kSignMs = 500, kSilentAtEndMs = 3'500;  // when the server ends, a wedged engine is not waited for

Refusal refusal_of(const Event& error) {
  for (const ErrorKind kind :
       {ErrorKind::invalid_argument, ErrorKind::not_found, ErrorKind::busy, ErrorKind::out_of_memory,
        ErrorKind::corrupt_file, ErrorKind::io, ErrorKind::device_lost, ErrorKind::cancelled})
    if (error.reason == name_of(kind)) return {kind, error.text, error.code};
  return {ErrorKind::io, error.text, error.code};
}

// A name that is looked up as a path is no business of a client's.
bool looks_like_path(const std::string& name) {
  return name.starts_with('/') || name.starts_with('.') || name.starts_with('~') ||
         name.find("..") != std::string::npos;
}

// What clients call a model: never where it lies.
std::string id_of(const hub::FoundModel& found) {
  if (!found.repo.empty()) return found.name;
  const std::filesystem::path name =
      found.path.has_filename() ? found.path.filename() : found.path.parent_path().filename();
  return name.extension() == ".gguf" ? name.stem().string() : name.string();
}

// The sentence without the folder that the model lies in.
std::string without_folder(std::string text, const std::filesystem::path& model) {
  const std::string folder = model.parent_path().string() + "/";
  for (size_t at = 0; folder.size() > 1 && (at = text.find(folder, at)) != std::string::npos;)
    text.erase(at, folder.size());
  return text;
}

}  // namespace

std::string_view name_of(ModelState state) {
  switch (state) {
    case ModelState::absent: return "absent";
    case ModelState::queued: return "queued";
    case ModelState::loading: return "loading";
    case ModelState::ready: return "ready";
    case ModelState::waits_for_restart: return "restarting";
    case ModelState::failed: return "failed";
  }
  return "";
}

Models::Models(ModelsOptions options, hub::Store store) : options_(std::move(options)), store_(std::move(store)) {
  if (!options_.default_model.empty()) {
    hub::FoundModel found = store_.find(options_.default_model);
    default_id_ = options_.served_name.empty() ? id_of(found) : options_.served_name;
    Entry& entry = entries_[default_id_];
    entry.found = std::move(found);
    entry.pinned = true;
  }
  for (const std::string& name : options_.allowed) {
    hub::FoundModel found = store_.find(name);
    const std::string id = id_of(found);
    entries_[id].found = std::move(found);
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
  // Requests under way hold theirs until they have heard of the end.
  for (int patience = 50; patience > 0; --patience) {
    destroy_buried();
    std::unique_lock lock(graveyard_->mutex);
    if (graveyard_->living == 0) break;
    graveyard_->filled.wait_for(lock, kTick, [&] { return !graveyard_->links.empty(); });
  }
}

void Models::destroy_buried() {
  std::vector<std::unique_ptr<WorkerLink>> links;
  {
    const std::lock_guard lock(graveyard_->mutex);
    links.swap(graveyard_->links);
  }
  const auto count = static_cast<int64_t>(links.size());
  links.clear();
  const std::lock_guard lock(graveyard_->mutex);
  graveyard_->living -= count;
}

std::string Models::resolve(const std::string& name) const {
  if (name.empty() || name == "hearth/local" || name == "default") {
    if (default_id_.empty()) fail(ErrorKind::not_found, "no model is named, and the server has no default one");
    return default_id_;
  }
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (id == name || entry.found.name == name) return id;
      names.push_back(id);
    }
  }
  if (options_.allowed.empty() && !options_.only_default && !looks_like_path(name)) {
    try {
      return store_.find(name).name;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
      for (const hub::Snapshot& snapshot : store_.list()) names.push_back(snapshot.repo);
    }
  }
  if (options_.any_model && !default_id_.empty()) return default_id_;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  fail(ErrorKind::not_found, "there is no model {}; there {} {}", name, names.size() == 1 ? "is" : "are",
       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

Models::Entry& Models::entry_of(const std::string& id) {
  if (const auto found = entries_.find(id); found != entries_.end()) return found->second;
  Entry entry;
  entry.found = store_.find(id);
  return entries_.emplace(id, std::move(entry)).first->second;
}

void Models::acquire(const std::string& id, Ready ready, std::function<void(const Refusal&)> refused) {
  std::shared_ptr<WorkerLink> worker;
  json::Object facts;
  try {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(id);
    entry.used = Clock::now();
    if (draining_) {
      fail(ErrorKind::busy, "the server is shutting down");
    } else if (entry.state == ModelState::failed) {
      fail(ErrorKind::corrupt_file, "{}", entry.problem);
    } else if (entry.state == ModelState::ready && !entry.yields) {
      entry.unload_when_idle = false;  // if it was to go, it stays for this one
      worker = entry.worker;
      facts = entry.facts;
      ++entry.leases;
    } else {
      entry.waiters.push_back({std::move(ready), std::move(refused)});
      if (entry.state == ModelState::absent) enqueue(id, entry);
    }
  } catch (const Error& error) {
    return refused({error.kind(), error.what(), ""});
  }
  if (!worker) return changed_.notify_all();
  ready(worker, facts);
  const std::lock_guard lock(mutex_);
  --entries_.at(id).leases;
}

// Those that wait while it yields do not keep it.
bool Models::idle(const Entry& entry) const {
  return entry.state == ModelState::ready && entry.leases == 0 && entry.worker->open_requests() == 0;
}

int64_t Models::bytes_taken() const {
  int64_t sum = 0;
  for (const auto& [id, entry] : entries_) {
    if (entry.state != ModelState::ready) continue;
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
  entry.state = ModelState::queued;
  queue_.push_back(id);
}

// Its worker ends on the pool's thread. Who waits for it waits for the next one.
void Models::retire(const std::string& id, Entry& entry) {
  retired_.push_back(std::move(entry.worker));
  entry.worker = nullptr;
  entry.state = ModelState::absent;
  entry.unload_when_idle = entry.yields = false;
  if (!entry.waiters.empty()) enqueue(id, entry);
}

// --- the pool's thread ---

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
      const auto ttl = entry.ttl_set ? entry.ttl : entry.pinned ? std::nullopt : std::optional(options_.ttl);
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
      for (const auto& link : retired) {
        link->kill();
        link->wait_end(kEndOfRetired);
      }
      retired.clear();
      destroy_buried();
      lock.lock();
      continue;  // what waits for their memory may start now
    }
    hand_over(lock);
    lock.unlock();
    destroy_buried();
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
  if (!loading_.empty() || queue_.empty() || !retired_.empty()) return;
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
    // Under the lock: a worker that ends at once is not to be told of before it is known here.
    auto link =
        std::make_unique<WorkerLink>(options_.command(entry.found, std::max<int64_t>(room, 1)), std::move(owner));
    {
      const std::lock_guard count(graveyard_->mutex);
      ++graveyard_->living;
    }
    entry.worker = std::shared_ptr<WorkerLink>(link.release(), [graveyard = graveyard_](WorkerLink* last) {
      const std::lock_guard bury(graveyard->mutex);
      graveyard->links.emplace_back(last);
      graveyard->filled.notify_all();
    });
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

void Models::loaded(const std::string& id, json::Object facts) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_.at(id);
  if (stopping_ || entry.state != ModelState::loading) return;
  entry.state = ModelState::ready;
  entry.facts = std::move(facts);
  entry.used = entry.ready_at = Clock::now();
  entry.problem.clear();
  loading_.clear();
  serve_waiters(id, entry, lock);
}

// The load was refused. Where memory is short and other models hold some, it is tried again when one has gone.
void Models::refused(const std::string& id, const Event& event) {
  std::vector<Waiter> waiters;
  Event error = event;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    if (loading_ == id) loading_.clear();
    waiters.swap(entry.waiters);
    if (entry.worker) retire(id, entry);
    entry.state = ModelState::absent;
    log::warn("front", "{} is not loaded: {}", id, error.text);
    error.text = without_folder(std::move(error.text), entry.found.path);
    entry.problem = error.text;
    const bool others = std::any_of(entries_.begin(), entries_.end(), [](const auto& other) {
      return other.second.state == ModelState::ready && !other.second.pinned;
    });
    if (error.reason == name_of(ErrorKind::out_of_memory) && others) {
      entry.state = ModelState::waits_for_restart;
      entry.needs_room = true;
      waiters.swap(entry.waiters);
    }
  }
  changed_.notify_all();
  Refusal refusal = refusal_of(error);
  if (refusal.kind == ErrorKind::invalid_argument)
    refusal.kind = ErrorKind::corrupt_file;  // the file's fault, not the request's
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
  for (const Waiter& waiter : waiters) waiter.refused({ErrorKind::device_lost, problem, "worker_lost"});
}

// --- any thread ---

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
  const std::lock_guard lock(mutex_);
  entry_of(id).pinned = pinned;
}

void Models::keep_alive(const std::string& id, std::optional<milliseconds> ttl) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(id);
  entry.ttl = ttl;
  entry.ttl_set = true;
}

ModelView Models::view(const std::string& id, const Entry& entry) const {
  return {.id = id,
          .path = entry.found.path.string(),
          .revision = entry.found.revision,
          .state = entry.state,
          .pinned = entry.pinned,
          .is_default = id == default_id_,
          .facts = entry.facts,
          .open_requests = entry.worker ? entry.worker->open_requests() : 0,
          .restarts = entry.restarts,
          .problem = entry.problem,
          .pid = entry.worker ? entry.worker->pid() : -1};
}

std::vector<ModelView> Models::list() const {
  std::vector<ModelView> views;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) views.push_back(view(id, entry));
  }
  if (options_.allowed.empty() && !options_.only_default)
    for (const hub::Snapshot& snapshot : store_.list()) {
      const auto known = [&](const ModelView& v) {
        return v.id == snapshot.repo || v.path.starts_with(snapshot.folder.string());
      };
      if (!snapshot.format || !snapshot.problem.empty() || std::any_of(views.begin(), views.end(), known)) continue;
      ModelView v;
      v.id = snapshot.repo;
      v.path = snapshot.folder.string();
      v.revision = snapshot.revision;
      views.push_back(std::move(v));
    }
  std::stable_sort(views.begin(), views.end(),
                   [](const ModelView& a, const ModelView& b) { return a.is_default > b.is_default; });
  return views;
}

std::vector<ModelView> Models::resident() const {
  std::vector<ModelView> views;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (entry.state != ModelState::absent) views.push_back(view(id, entry));
  return views;
}

int64_t Models::silence_ms() const {
  int64_t longest = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (entry.worker) longest = std::max(longest, entry.worker->silence_ms());
  return longest;
}

bool Models::is_wedged() const { return options_.watchdog.count() > 0 && silence_ms() >= options_.watchdog.count(); }

int64_t Models::restarts() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [id, entry] : entries_) sum += entry.restarts;
  return sum;
}

json::Object Models::load_default(const std::function<void(int64_t, int64_t)>& progress) {
  {
    const std::lock_guard lock(mutex_);
    entries_.at(default_id_).progress = progress;
  }
  json::Object facts;
  std::optional<Refusal> refusal;
  bool ended = false;
  std::mutex mutex;
  std::condition_variable done;
  acquire(
      default_id_,
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
  entries_.at(default_id_).progress = nullptr;
  if (refusal) throw Error(refusal->kind, refusal->message);
  return facts;
}

void Models::drain(milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  std::unique_lock lock(mutex_);
  draining_ = true;
  for (;;) {
    bool open = false;
    for (auto& [id, entry] : entries_) {
      if (!entry.worker || entry.worker->open_requests() == 0) continue;
      open = true;
      const int64_t silence = entry.worker->silence_ms();
      if (silence >= kSignMs) entry.worker->ask_for_sign();
      if (silence >= kSilentAtEndMs) entry.worker->kill();
    }
    if (!open || Clock::now() >= deadline) break;
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
