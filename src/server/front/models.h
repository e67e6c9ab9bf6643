// The models that the server may serve: which are loaded, one worker each; loads, evictions, restarts (spec
// server 2.2).
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "hub/store.h"
#include "server/front/adapter_files.h"
#include "server/front/links.h"
#include "server/front/refusal.h"
#include "server/front/text_workers.h"
#include "server/front/worker_link.h"

namespace hearth::server {

// What a person's models.toml says of one model; it holds however often the model is unloaded.
struct ModelRules {
  bool pinned = false;
  std::optional<std::chrono::milliseconds> ttl;  // nullopt: as for all
};

// A model that may be asked for, and where it lies.
struct LocalModel {
  std::string id;
  hub::FoundModel found;
  bool serving = false;  // the default one
};

struct ModelsOptions {
  std::string default_model;         // named on the command line: loaded at start, pinned
  std::string served_name;           // what it is called; empty: its own name
  std::vector<std::string> allowed;  // names that may be loaded; empty: all of the store
  bool only_default = false;         // no other may be loaded (a bind beyond loopback without an allow-list)
  bool any_model = false;            // unknown names mean the default one
  // Folders of adapters that are mounted on the default model whenever it is loaded; the first one is on where a
  // request names none. One that does not fit fails the load.
  std::vector<std::filesystem::path> adapters;
  std::chrono::milliseconds ttl{300'000};  // idle time after which a model that is not pinned is unloaded
  int64_t memory_budget = 0;               // bytes of all workers together
  // Requests run and their engine is silent for so long: it is wedged. After half as much again its worker is ended and
  // started anew. 0: nobody watches.
  std::chrono::milliseconds watchdog{60'000};
  // The program that serves the model at `path`, called `name` as clients call it, within so many bytes.
  std::function<WorkerCommand(const hub::FoundModel& model, int64_t memory_budget)> command;
  // The one that reads its tokenizer and template alone.
  std::function<WorkerCommand(const hub::FoundModel& model)> text_command;
  std::chrono::milliseconds text_idle{60'000};
  std::function<ModelRules(const hub::FoundModel& model)> rules = [](const hub::FoundModel&) { return ModelRules(); };
};

enum class ModelState : uint8_t { absent, queued, loading, ready, waits_for_restart, failed };
std::string_view name_of(ModelState state);

struct ModelView {
  std::string id, path, repo, revision;
  ModelState state = ModelState::absent;
  bool pinned = false, is_default = false;
  json::Object facts;  // empty until it has been loaded once
  int64_t open_requests = 0, restarts = 0;
  std::string problem;  // of the last failure
  pid_t pid = -1;
};

// What a request's model means: "name:adapter" names an adapter too, where the part behind ":" is none of the model's
// own files.
struct ModelChoice {
  std::string id, adapter;
};

// An adapter that belongs to a model: mounted whenever the model is loaded.
struct MountedAdapter {
  std::string id;
  AdapterFiles files;
  bool force = false, is_default = false;
  bool from_start = false;  // of ModelsOptions::adapters
  bool on_worker = false;   // the model's worker at hand has it
  json::Object facts;  // what the worker said of it: base, revision, compatible, rank; empty before the first mount
};

struct AdapterView {
  std::string model;
  bool is_resident = false;
  MountedAdapter adapter;
};

// Thread-safe. Callbacks come on the caller's thread (a model that is ready) or on one of the pool's; none may block.
class Models {
 public:
  Models(ModelsOptions options, hub::Store store);
  ~Models();
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  // What a request's name means; empty: the default model. Throws Error{not_found} with the names there are.
  ModelChoice choose(const std::string& name) const;
  std::string resolve(const std::string& name) const { return choose(name).id; }

  // The worker of the model `id`, loaded first if need be; requests for one cold model start one load.
  using Ready = std::function<void(const std::shared_ptr<WorkerLink>& worker, const json::Object& facts)>;
  // Where text alone is wanted and the model is not loaded, a worker without weights: nothing is loaded or evicted.
  enum class Wanted : uint8_t { model, text };
  void acquire(const std::string& id, Ready ready, std::function<void(const Refusal&)> refused,
               Wanted wanted = Wanted::model);

  // From now on any_model, ttl, watchdog and, for what is started next, command and text_command are these.
  void reload(const ModelsOptions& options);

  void unload(const std::string& id);  // when its requests have ended
  void pin(const std::string& id, bool pinned);
  void keep_alive(const std::string& id, std::optional<std::chrono::milliseconds> ttl);  // nullopt: never unloaded

  // Mounts an adapter on the model, which is loaded first if need be; done once, with the worker's facts or its error.
  // Throws RequestError for an id that is taken, Error as entry_of.
  using Mounted = std::function<void(const Event* error, const json::Object& facts)>;
  void mount(const std::string& id, MountedAdapter adapter, Mounted mounted,
             std::function<void(const Refusal&)> refused);
  // The other way: done when the last request that uses it has ended. Throws Error{not_found} for one that is not
  // mounted there.
  void unmount(const std::string& id, const std::string& adapter, Mounted done,
               std::function<void(const Refusal&)> refused);
  std::vector<AdapterView> adapters() const;  // of all models

  std::vector<ModelView> list() const;      // all that may be served
  std::vector<ModelView> resident() const;  // loaded ones, and those that are about to be
  // All that may be served, each file of a repository with several of them; looks at the store, opens nothing.
  std::vector<LocalModel> local() const;
  hub::FoundModel found(const std::string& id) const;  // of a resolved name
  // Milliseconds since a worker with open requests was last heard of; 0 when none is open.
  int64_t silence_ms() const;
  bool is_wedged() const;  // that is longer than the watchdog allows
  int64_t restarts() const;

  // Waits until the default model is ready. Throws Error when it cannot be loaded.
  json::Object load_default(const std::function<void(int64_t done, int64_t total)>& progress);

  void drain(std::chrono::milliseconds at_most);  // no new requests; waits for the open ones

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    Ready ready;
    std::function<void(const Refusal&)> refused;
  };
  struct Entry {
    hub::FoundModel found;
    ModelState state = ModelState::absent;
    bool pinned = false, unload_when_idle = false;
    bool needs_room = false;  // it waits for others to go
    bool yields = false;      // new requests wait until another that needs room has had its turn
    std::optional<std::chrono::milliseconds> rule_ttl;  // of its rules
    std::optional<std::chrono::milliseconds> ttl;       // asked for by a request, if ttl_set
    bool ttl_set = false;
    std::shared_ptr<WorkerLink> worker;
    json::Object facts;
    std::vector<MountedAdapter> adapters;
    std::vector<Waiter> waiters;
    int64_t leases = 0;  // acquire() callbacks under way
    Clock::time_point used, ready_at, restart_at;
    int failures = 0;
    int64_t restarts = 0;
    std::string problem;
    std::function<void(int64_t, int64_t)> progress;
  };

  Entry& entry_of(const std::string& id);
  std::optional<ModelChoice> choose_known(const std::string& name) const;
  Entry& add(const std::string& id, hub::FoundModel found);
  void tick();
  void start_next(std::unique_lock<std::mutex>& lock);
  void start(const std::string& id, std::unique_lock<std::mutex>& lock);
  void loaded(const std::string& id, json::Object facts);
  void mount_next(const std::string& id);
  void serve_loaded(const std::string& id, Entry& entry, std::unique_lock<std::mutex>& lock);
  bool forget_adapter(const std::string& id, const std::string& adapter);
  void refused(const std::string& id, const Event& event);
  void lost(const std::string& id);
  void watch(const std::string& id, Entry& entry);
  void make_room(Clock::time_point now);
  void stop_yielding();
  void enqueue(const std::string& id, Entry& entry);
  bool may_go(const Entry& entry, Clock::time_point now) const;
  bool idle(const Entry& entry) const;
  void retire(const std::string& id, Entry& entry);
  void hand_over(std::unique_lock<std::mutex>& lock);
  void refuse_waiters(std::unique_lock<std::mutex>& lock);
  void serve_waiters(const std::string& id, Entry& entry, std::unique_lock<std::mutex>& lock);
  int64_t bytes_taken(bool by_pinned_alone = false) const;
  ModelView view(const std::string& id, const Entry& entry) const;

  ModelsOptions options_;
  hub::Store store_;
  std::string default_id_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> queue_;                     // ids that wait for their load, in turn
  std::string loading_;                               // the one load under way
  std::vector<std::shared_ptr<WorkerLink>> retired_;  // links whose end is awaited on the pool's thread
  Links links_;
  TextWorkers texts_;
  bool draining_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace hearth::server
