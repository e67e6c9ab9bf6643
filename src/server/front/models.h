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
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "hub/store.h"
#include "server/front/adapter_files.h"
#include "server/front/errand.h"
#include "server/front/links.h"
#include "server/front/model_names.h"
#include "server/front/text_workers.h"
#include "server/front/worker_link.h"
#include "server/front/worker_waiter.h"
#include "server/model_view.h"
#include "server/refusal.h"

namespace hearth::server {

// What a person's models.toml says of one model; it holds however often the model is unloaded.
struct ModelRules {
  bool pinned = false;
  std::optional<std::chrono::milliseconds> ttl;  // nullopt: as for all
};

struct ModelsOptions : NameOptions {
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

  const ModelNames& names() const { return names_; }
  // As ModelNames::choose.
  ModelChoice choose(const std::string& name) const { return names_.choose(name); }
  std::string resolve(const std::string& name) const { return choose(name).id; }

  // The worker of the model `id`, loaded first if need be; requests for one cold model start one load.
  using Ready = WorkerWaiter::Ready;
  // What `ready` throws, Error or bad_alloc, goes to `refused`, and so does memory that cannot be had on the way there.
  // Where text alone is wanted and the model is not loaded, a worker without weights: nothing is loaded or evicted.
  enum class Wanted : uint8_t { model, text };
  void acquire(const std::string& id, Ready ready, std::function<void(const Refusal&)> refused,
               Wanted wanted = Wanted::model);

  // The worker of a model that is loaded, for a look at its figures; null: it is not. When the model goes stays as it
  // was: only acquire() is a use of it.
  std::shared_ptr<WorkerLink> at_hand(const std::string& id) const;

  // Throws as ModelNames::check.
  void check(const ModelsOptions& options) const { names_.check(options); }
  // From now on any_model, aliases, default_model, ttl, rules, watchdog and, for what is started next, command and
  // text_command are these, which check() has let pass. Another default model is loaded and pinned as at a start; the
  // one before is as any other, and so are the adapters that it has.
  void reload(const ModelsOptions& options);

  void unload(const std::string& id);  // when its requests have ended
  void pin(const std::string& id, bool pinned);
  void keep_alive(const std::string& id, std::optional<std::chrono::milliseconds> ttl);  // nullopt: never unloaded

  // Mounts an adapter on the model, which is loaded first if need be; done once, with the worker's facts or its error.
  // Throws RequestError for an id that is taken, ClientError as ModelNames::found.
  using Mounted = std::function<void(const Event* error, const json::Object& facts)>;
  void mount(const std::string& id, MountedAdapter adapter, Mounted mounted,
             std::function<void(const Refusal&)> refused);
  // The other way: done when the last request that uses it has ended. Throws Error{not_found} for one that is not
  // mounted there.
  void unmount(const std::string& id, const std::string& adapter, Mounted done,
               std::function<void(const Refusal&)> refused);
  std::vector<AdapterView> adapters() const;  // of all models

  std::vector<ModelView> list() const;      // all that may be served; throws as ModelNames::all
  std::vector<ModelView> resident() const;  // loaded ones, and those that are about to be
  // Milliseconds since a worker with open requests was last heard of; 0 when none is open.
  int64_t silence_ms() const;
  bool is_wedged() const;  // that is longer than the watchdog allows
  int64_t restarts() const;

  // Waits until the default model is ready. Throws Error when it cannot be loaded.
  json::Object load_default(const std::function<void(int64_t done, int64_t total)>& progress);

  void drain(std::chrono::milliseconds at_most);  // no new requests; waits for the open ones

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    hub::FoundModel found;
    ModelState state = ModelState::absent;
    bool pinned = false, unload_when_idle = false;
    bool needs_room = false;  // it waits for others to go
    bool yields = false;      // new requests wait until another that needs room has had its turn
    ModelRules rules;
    std::optional<std::chrono::milliseconds> ttl;  // asked for by a request, if ttl_set
    bool ttl_set = false;
    uint64_t serial = 0;  // of its worker: what an earlier one says does not count
    std::shared_ptr<WorkerLink> worker;
    json::Object facts;
    std::vector<MountedAdapter> adapters;
    std::vector<WorkerWaiter> waiters;
    int64_t leases = 0;  // acquire() callbacks under way
    Clock::time_point used, ready_at, restart_at;
    int failures = 0;
    int64_t restarts = 0;
    std::string problem;
    std::function<void(int64_t, int64_t)> progress;
  };

  void know(const std::string& id);  // makes its entry; throws as ModelNames::found
  void add(const std::string& id, hub::FoundModel found);
  static MountedAdapter adapter_at_start(const std::filesystem::path& folder);
  void tick();
  void start_next(std::unique_lock<std::mutex>& lock);
  void start(const std::string& id, std::unique_lock<std::mutex>& lock);
  void loaded(const std::string& id, uint64_t serial, json::Object facts);
  void mount_next(const std::string& id);
  void serve_loaded(const std::string& id, Entry& entry, std::unique_lock<std::mutex>& lock);
  void send_mount(const std::string& id, const std::shared_ptr<Errand>& errand,
                  const std::function<void(const Refusal&)>& refused);
  bool forget_adapter(const std::string& id, const std::string& adapter);
  void refused(const std::string& id, uint64_t serial, Refusal refusal);
  void lost(const std::string& id, uint64_t serial);
  void watch(const std::string& id, Entry& entry);
  void make_room(Clock::time_point now);
  void enqueue(const std::string& id, Entry& entry);
  bool may_go(const Entry& entry, Clock::time_point now) const;
  bool idle(const Entry& entry) const;
  static bool serves(const Entry& entry);
  std::optional<std::chrono::milliseconds> ttl_of(const Entry& entry) const;
  void retire(const std::string& id, Entry& entry);
  void hand_over(std::unique_lock<std::mutex>& lock);
  void refuse_waiters(std::unique_lock<std::mutex>& lock);
  void give(const std::string& id, const std::shared_ptr<WorkerLink>& worker, const json::Object& facts,
            std::span<const WorkerWaiter> waiters);
  void serve_waiters(const std::string& id, Entry& entry, std::unique_lock<std::mutex>& lock);
  int64_t bytes_taken(bool by_pinned_alone = false) const;
  ModelView view(const std::string& id, const Entry& entry) const;

  ModelsOptions options_;
  ModelNames names_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> queue_;                     // ids that wait for their load, in turn
  std::string loading_;                               // the one load under way
  std::vector<std::shared_ptr<WorkerLink>> retired_;  // links whose end is awaited on the pool's thread
  Links links_;
  TextWorkers texts_;
  uint64_t serials_ = 0;
  bool draining_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace hearth::server
