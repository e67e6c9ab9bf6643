#include "server/front/errand.h"

#include <utility>

namespace hearth::server {

using Lock = std::unique_lock<std::mutex>;

std::shared_ptr<Errand> Errand::make(Send send) { return std::shared_ptr<Errand>(new Errand(std::move(send))); }

WorkerLink::Taken Errand::taken() {
  return [weak = weak_from_this()] {
    if (const auto still = weak.lock()) still->forget();
  };
}

void Errand::give(const std::shared_ptr<WorkerLink>& worker) {
  std::shared_ptr<const Send> send;
  {
    const Lock lock(mutex_);
    if (ended_) return;
    worker_ = worker;
    send = send_;
  }
  // Not under the lock: a worker that has just ended answers at once, and the errand may be with another one then.
  const uint64_t id = (*send)(*worker, shared_from_this());
  const Lock lock(mutex_);
  if (cancelled_) return worker->cancel(id);
  if (worker_ != worker) return;
  id_ = id;
  if (held_) worker->hold(id);  // its first words came before its id
}

void Errand::forget() {
  std::shared_ptr<const Send> send;  // goes without the lock
  const Lock lock(mutex_);
  send.swap(send_);
}

bool Errand::goes_again(const Event& error) {
  if (!error.untaken) return false;
  const Lock lock(mutex_);
  if (ended_ || again_ || !send_) return false;
  again_ = true;
  worker_ = nullptr;
  id_ = 0;
  return true;
}

bool Errand::hold() {
  const Lock lock(mutex_);
  if (ended_ || std::exchange(held_, true)) return false;
  if (id_) worker_->hold(id_);
  return true;
}

void Errand::release() {
  const Lock lock(mutex_);
  if (ended_ || !std::exchange(held_, false)) return;
  if (id_) worker_->release(id_);
}

void Errand::end() {
  std::shared_ptr<const Send> send;
  std::shared_ptr<WorkerLink> worker;
  const Lock lock(mutex_);
  ended_ = true;
  send.swap(send_);
  worker.swap(worker_);
  id_ = 0;
}

void Errand::cancel() {
  {
    const Lock lock(mutex_);
    if (!ended_) cancelled_ = true;
    if (id_) worker_->cancel(id_);
  }
  end();
}

}  // namespace hearth::server
