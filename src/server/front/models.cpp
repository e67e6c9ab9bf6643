#include "server/front/models.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "formats/adapter.h"

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kServesFirst = seconds(2);                 // a freshly loaded model, before another may push it out
constexpr int64_t kSignMs = 500, kSilentAtEndMs = 3'500;  // when the server ends, a wedged engine is not waited for

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

MountedAdapter adapter_at_start(const std::filesystem::path& folder) {
  MountedAdapter adapter;
  adapter.id = formats::adapter_id_of(folder);
  try {
    adapter.files = open_adapter(folder);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", folder.string(), error.what());
  }
  adapter.from_start = true;
  adapter.force = true;  // it was named by hand; a mismatch is said in the log and in the list
  return adapter;
}

milliseconds silence_of_texts(const ModelsOptions& options) { return options.watchdog + options.watchdog / 2; }

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

Models::Models(ModelsOptions options, hub::Store store)
    : options_(std::move(options)),
      store_(std::move(store)),
      texts_({.command = options_.text_command, .idle = options_.text_idle, .silence = silence_of_texts(options_)}) {
  if (!options_.default_model.empty()) {
    hub::FoundModel found = store_.find(options_.default_model);
    if (!found.adapter.empty())
      fail(ErrorKind::invalid_argument, "{}: an adapter is mounted by --adapter DIR, name the model alone",
           options_.default_model);
    default_id_ = options_.served_name.empty() ? id_of(found) : options_.served_name;
    Entry& entry = add(default_id_, std::move(found));
    entry.pinned = true;
    for (const std::filesystem::path& folder : options_.adapters) entry.adapters.push_back(adapter_at_start(folder));
    if (!entry.adapters.empty()) entry.adapters.front().is_default = true;
  }
  for (const std::string& name : options_.allowed) {
    hub::FoundModel found = store_.find(name);
    const std::string id = id_of(found);
    if (!entries_.contains(id)) add(id, std::move(found));
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
  links_.settle(seconds(5));
}

// Of the command line or the allow-list, by its own name.
std::optional<ModelChoice> Models::choose_known(const std::string& name) const {
  if (name.empty() || name == "hearth/local" || name == "default") {
    if (default_id_.empty()) fail(ErrorKind::not_found, "no model is named, and the server has no default one");
    return ModelChoice{default_id_, ""};
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (id == name || entry.found.name == name) return ModelChoice{id, ""};
  return std::nullopt;
}

ModelChoice Models::choose(const std::string& name) const {
  if (const auto known = choose_known(name)) return *known;
  const size_t colon = name.rfind(':');
  std::optional<ModelChoice> with_adapter;
  if (colon != std::string::npos && colon > 0 && colon + 1 < name.size() &&
      (with_adapter = choose_known(name.substr(0, colon))))
    with_adapter->adapter = name.substr(colon + 1);
  std::vector<std::string> names;
  bool any_model = false;
  {
    const std::lock_guard lock(mutex_);
    any_model = options_.any_model;
    for (const auto& [id, entry] : entries_) names.push_back(id);
    // Only a repository can have a file of that label.
    if (with_adapter && entries_.at(with_adapter->id).found.repo.empty()) return *with_adapter;
  }
  if (options_.allowed.empty() && !options_.only_default && !looks_like_path(name)) {
    try {
      const hub::FoundModel found = store_.find_stored(name);  // never a file where the server stands
      return {found.name, found.adapter};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
      for (const hub::Snapshot& snapshot : store_.list()) names.push_back(snapshot.repo);
    }
  }
  if (with_adapter) return *with_adapter;
  if (any_model && !default_id_.empty()) return {default_id_, ""};
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  fail(ErrorKind::not_found, "there is no model {}; there {} {}", name, names.size() == 1 ? "is" : "are",
       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

Models::Entry& Models::entry_of(const std::string& id) {
  if (const auto found = entries_.find(id); found != entries_.end()) return found->second;
  return add(id, store_.find(id));
}

Models::Entry& Models::add(const std::string& id, hub::FoundModel found) {
  const ModelRules rules = options_.rules(found);
  Entry& entry = entries_[id];
  entry.found = std::move(found);
  entry.pinned = rules.pinned;
  entry.rule_ttl = rules.ttl;
  return entry;
}

hub::FoundModel Models::found(const std::string& id) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = entries_.find(id); known != entries_.end()) return known->second.found;
  }
  return store_.find(id);
}

void Models::acquire(const std::string& id, Ready ready, std::function<void(const Refusal&)> refused, Wanted wanted) {
  std::shared_ptr<WorkerLink> worker;
  json::Object facts;
  std::optional<hub::FoundModel> text_of;
  try {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(id);
    entry.used = Clock::now();
    if (draining_) {
      fail(ErrorKind::busy, "the server is shutting down");
    } else if (wanted == Wanted::text && (entry.state != ModelState::ready || entry.yields)) {
      text_of = entry.found;
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
    return refused({.kind = error.kind(), .message = error.what(), .code = {}});
  }
  if (text_of) texts_.acquire(id, *text_of, std::move(ready), std::move(refused));
  if (!worker) return changed_.notify_all();
  ready(worker, facts);
  const std::lock_guard lock(mutex_);
  --entries_.at(id).leases;
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
  entry.state = ModelState::queued;
  queue_.push_back(id);
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
          .repo = entry.found.repo,
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
      v.repo = snapshot.repo;
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

bool Models::is_wedged() const {
  int64_t allowed = 0;
  {
    const std::lock_guard lock(mutex_);
    allowed = options_.watchdog.count();
  }
  return allowed > 0 && silence_ms() >= allowed;
}

void Models::reload(const ModelsOptions& options) {
  {
    const std::lock_guard lock(mutex_);
    options_.any_model = options.any_model;
    options_.ttl = options.ttl;
    options_.watchdog = options.watchdog;
    options_.command = options.command;
  }
  texts_.reload(options.text_command, silence_of_texts(options));
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

// A load is not waited for, and neither is a model that others hold up.
void Models::refuse_waiters(std::unique_lock<std::mutex>& lock) {
  std::vector<Waiter> waiters;
  for (auto& [id, entry] : entries_) {
    std::move(entry.waiters.begin(), entry.waiters.end(), std::back_inserter(waiters));
    entry.waiters.clear();
    if (entry.state == ModelState::loading && entry.worker) entry.worker->kill();
  }
  queue_.clear();
  lock.unlock();
  for (const Waiter& waiter : waiters) waiter.refused({ErrorKind::busy, "the server is shutting down", ""});
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
