// Workers with a model's tokenizer and template alone (spec server 4): for requests that count or spell tokens of a
// model that is not loaded. They hold no weights, so they are no loaded models and make no room; each ends when nobody
// has asked it for a minute.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "hub/store.h"
#include "server/front/links.h"
#include "server/front/worker_waiter.h"
#include "server/refusal.h"

namespace hearth::server {

struct TextWorkersOptions {
  std::function<WorkerCommand(const hub::FoundModel& model)> command;
  std::chrono::milliseconds idle{60'000};
  // With requests open and silent for so long, one is ended: its requests get worker_lost. 0: never.
  std::chrono::milliseconds silence{90'000};
  size_t workers_max = 8;  // beyond it the one asked longest ago goes, and where none is idle a start waits
};

// Thread-safe. Callbacks come on the caller's thread (a worker that is ready) or on a worker's link; none may block.
class TextWorkers {
 public:
  explicit TextWorkers(TextWorkersOptions options) : options_(std::move(options)) {}
  ~TextWorkers();  // ends them
  TextWorkers(const TextWorkers&) = delete;
  TextWorkers& operator=(const TextWorkers&) = delete;

  // The worker of the model `id`; tick() starts it if need be. Requests for one model start one worker.
  // Memory that cannot be had on the way is told to the waiter.
  void acquire(const std::string& id, const hub::FoundModel& model, WorkerWaiter waiter);

  // From now on these; a worker that runs stays as it was started.
  void reload(std::function<WorkerCommand(const hub::FoundModel& model)> command, std::chrono::milliseconds silence);

  // The owner's thread, several times a second: starts what is asked for, ends what is idle or silent.
  void tick();

  int64_t open_requests() const;  // those that wait for their worker too

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    hub::FoundModel model;
    uint64_t serial = 0;  // of its worker: what an earlier one of the model says does not count
    std::shared_ptr<WorkerLink> worker;
    bool ready = false;
    std::vector<WorkerWaiter> waiters;
    int64_t leases = 0;  // acquire() callbacks under way
    Clock::time_point started, used;
  };

  void give(const std::string& id, uint64_t serial, const std::shared_ptr<WorkerLink>& worker,
            std::span<const WorkerWaiter> waiters);
  void start(const std::string& id, Entry& entry);
  void loaded(const std::string& id, uint64_t serial);
  void ended(const std::string& id, uint64_t serial, const Refusal& refusal);
  void retire_idle(Clock::time_point now);
  static bool idle(const Entry& entry);

  TextWorkersOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::vector<std::shared_ptr<WorkerLink>> retired_;
  uint64_t serials_ = 0;
  bool stopping_ = false;
  Links links_;
};

}  // namespace hearth::server
