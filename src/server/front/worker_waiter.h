// One who has asked for a model's worker, and hears of it once.
#pragma once
#include <functional>
#include <memory>

#include "base/json.h"
#include "server/front/worker_link.h"
#include "server/refusal.h"

namespace hearth::server {

struct WorkerWaiter {
  using Ready = std::function<void(const std::shared_ptr<WorkerLink>& worker, const json::Object& facts)>;
  Ready ready;
  std::function<void(const Refusal&)> refused;

  // What ready() throws, Error or bad_alloc, is refused(): it concerns nobody else who waits.
  void give(const std::shared_ptr<WorkerLink>& worker, const json::Object& facts) const {
    try {
      ready(worker, facts);
    } catch (...) {
      refused(refusal_at_hand());
    }
  }
};

}  // namespace hearth::server
