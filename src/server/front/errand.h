// A request and the worker that it is with. What a worker never read, because it ended by itself before that, goes to
// the next one, once: what ends that one unread too is told (spec server 2.1).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "server/front/worker_link.h"

namespace hearth::server {

// Thread-safe; it calls nobody back with its lock held.
class Errand : public std::enable_shared_from_this<Errand> {
 public:
  // Sends the request with errand->taken(), and returns its id there (WorkerLink::submit or call). What it holds is all
  // that is needed to send again: let go of when a worker has read it, or when the errand ends.
  using Send = std::function<uint64_t(WorkerLink& worker, const std::shared_ptr<Errand>& errand)>;
  static std::shared_ptr<Errand> make(Send send);
  WorkerLink::Taken taken();

  // The request goes to this worker. Not after its end.
  void give(const std::shared_ptr<WorkerLink>& worker);
  // Whether what ended with this error is to be given to the next worker.
  bool goes_again(const Event& error);

  // Its reader is too slow; a worker that gets it later hears of it. False: that is said already.
  bool hold();
  void release();

  // It is done with, answered or refused: the worker is let go of.
  void end();
  // The same for one that is not wanted any more: a worker that has it is told.
  void cancel();

 private:
  explicit Errand(Send send) : send_(std::make_shared<const Send>(std::move(send))) {}
  void forget();  // how to send it

  std::mutex mutex_;
  std::shared_ptr<const Send> send_;  // null: it is not sent again
  std::shared_ptr<WorkerLink> worker_;
  uint64_t id_ = 0;  // at that worker; 0: not known yet
  bool again_ = false, held_ = false, ended_ = false, cancelled_ = false;
};

}  // namespace hearth::server
