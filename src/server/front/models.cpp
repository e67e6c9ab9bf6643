#include "server/front/models.h"

#include <algorithm>

#include "base/log.h"

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = milliseconds(100);
constexpr auto kFirstRestart = seconds(1), kLastRestart = seconds(60);
constexpr auto kServesFirst = seconds(2);  // a freshly loaded model, before another may push it out
constexpr int kFailuresMax = 5;

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
  links.clear();  // their threads may still ask for the lock
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
    } else if (entry.state == ModelState::ready) {
      entry.unload_when_idle = false;  // if it was to go, it stays for this one
      worker = entry.worker;
      facts = entry.facts;
      ++entry.leases;
    } else {
      entry.waiters.push_back({std::move(ready), std::move(refused)});
      if (entry.state == ModelState::absent) {
        entry.state = ModelState::queued;
        queue_.push_back(id);
      }
    }
  } catch (const Error& error) {
    return refused({error.kind(), error.what(), ""});
  }
  if (!worker) return changed_.notify_all();
  ready(worker, facts);
  const std::lock_guard lock(mutex_);
  --entries_.at(id).leases;
}

bool Models::idle(const Entry& entry) const {
  return entry.state == ModelState::ready && entry.leases == 0 && entry.waiters.empty() &&
         entry.worker->open_requests() == 0;
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

// The idle model that was used longest ago; not the default one, and none that has just been loaded.
std::optional<std::string> Models::victim(Clock::time_point now) const {
  std::optional<std::string> best;
  for (const auto& [id, entry] : entries_)
    if (idle(entry) && !entry.pinned && now - entry.ready_at >= kServesFirst &&
        (!best || entry.used < entries_.at(*best).used))
      best = id;
  return best;
}

// Its worker ends on the pool's thread.
void Models::retire(Entry& entry) {
  retired_.push_back(std::move(entry.worker));
  entry.worker = nullptr;
  entry.state = ModelState::absent;
  entry.unload_when_idle = false;
}

// --- the pool's thread ---

void Models::tick() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = Clock::now();
    for (auto& [id, entry] : entries_) {
      if (entry.state == ModelState::ready && !idle(entry)) entry.used = now;
      if (entry.state == ModelState::waits_for_restart && now >= entry.restart_at) {
        entry.state = ModelState::queued;
        queue_.push_back(id);
      }
      if (!idle(entry)) continue;
      const auto ttl = entry.ttl_set ? entry.ttl : entry.pinned ? std::nullopt : std::optional(options_.ttl);
      if (entry.unload_when_idle || (ttl && now - entry.used >= *ttl)) {
        log::info("front", "{} is unloaded", id);
        retire(entry);
      }
    }
    start_next(lock);
    if (!retired_.empty()) {
      std::vector<std::shared_ptr<WorkerLink>> retired;
      retired.swap(retired_);
      lock.unlock();
      retired.clear();
      lock.lock();
    }
    changed_.wait_for(lock, kTick);
  }
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
  entry.state = ModelState::loading;
  loading_ = id;
  const hub::FoundModel found = entry.found;
  lock.unlock();
  std::shared_ptr<WorkerLink> worker;
  std::optional<Event> error;
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
    worker = std::make_shared<WorkerLink>(options_.command(found, std::max<int64_t>(room, 1)), std::move(owner));
  } catch (const Error& e) {
    error.emplace();
    error->text = e.what();
    error->reason = name_of(e.kind());
  }
  lock.lock();
  entries_.at(id).worker = worker;
  if (!error) return;
  lock.unlock();
  refused(id, *error);
  lock.lock();
}

// --- threads of the workers' links ---

void Models::loaded(const std::string& id, json::Object facts) {
  std::vector<Waiter> waiters;
  std::shared_ptr<WorkerLink> worker;
  {
    std::unique_lock lock(mutex_);
    Entry& entry = entries_.at(id);
    changed_.wait(lock, [&] { return entry.worker != nullptr || stopping_; });  // start() is about to set it
    if (stopping_) return;
    entry.state = ModelState::ready;
    entry.facts = facts;
    entry.used = entry.ready_at = Clock::now();
    entry.problem.clear();
    worker = entry.worker;
    waiters.swap(entry.waiters);
    entry.leases += static_cast<int64_t>(waiters.size());
    loading_.clear();
  }
  changed_.notify_all();
  for (const Waiter& waiter : waiters) {
    waiter.ready(worker, facts);
    const std::lock_guard lock(mutex_);
    --entries_.at(id).leases;
  }
}

// The load was refused. Where memory is short and an idle model is in the way, that one goes and the load is tried
// again.
void Models::refused(const std::string& id, const Event& error) {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    loading_.clear();
    if (entry.worker) retire(entry);
    entry.problem = error.text;
    const bool short_of_memory = error.reason == name_of(ErrorKind::out_of_memory);
    const bool others = std::any_of(entries_.begin(), entries_.end(), [&](const auto& other) {
      return other.first != id && other.second.state == ModelState::ready && !other.second.pinned;
    });
    if (short_of_memory && others) {
      if (const auto in_the_way = victim(Clock::now())) {
        log::info("front", "{} makes room for {}", *in_the_way, id);
        retire(entries_.at(*in_the_way));
      }
      entry.state = ModelState::waits_for_restart;  // now, or when a busy one has become idle
      entry.restart_at = Clock::now() + kTick;
    } else {
      entry.state = ModelState::absent;
      waiters.swap(entry.waiters);
    }
  }
  changed_.notify_all();
  for (const Waiter& waiter : waiters) waiter.refused(refusal_of(error));
}

void Models::lost(const std::string& id) {
  std::vector<Waiter> waiters;
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(id);
    if (stopping_ || draining_ || !entry.worker) return;  // it was told to end
    const bool was_ready = entry.state == ModelState::ready;
    if (loading_ == id) loading_.clear();
    if (was_ready && Clock::now() - entry.ready_at > kLastRestart) entry.failures = 0;
    retire(entry);
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
  const int64_t now = std::chrono::duration_cast<milliseconds>(Clock::now().time_since_epoch()).count();
  int64_t longest = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (entry.worker && entry.worker->open_requests() > 0)
      longest = std::max(longest, now - entry.worker->last_frame_ms());
  return longest;
}

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
  const auto open = [&] {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const auto& e) { return e.second.worker && e.second.worker->open_requests() > 0; });
  };
  while (open() && Clock::now() < deadline) changed_.wait_for(lock, milliseconds(20));
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
