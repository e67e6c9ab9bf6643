#include "server/routes/worker_calls.h"

#include <mutex>

namespace hearth::server {
namespace {

// One call under way. The reply comes on the link's thread, the client's end on an I/O thread: both under the lock.
class Ask : public std::enable_shared_from_this<Ask> {
 public:
  Ask(Services& services, Call call, json::Object body, std::function<json::Object(const json::Value&)> shape)
      : services_(services), call_(std::move(call)), body_(std::move(body)), shape_(std::move(shape)) {
    call_.request.body.clear();
  }

  void begin(const std::string& model, FrameKind kind) {
    model_ = model;
    kind_ = kind;
    call_.exchange->on_closed([self = shared_from_this()](net::Exchange::End end) {
      if (end != net::Exchange::End::done) self->gone();
    });
    acquire();
  }

 private:
  void acquire() {
    services_.models.acquire(
        model_,
        [self = shared_from_this()](const std::shared_ptr<WorkerLink>& worker, const json::Object&) {
          self->ask(worker);
        },
        [self = shared_from_this()](const Refusal& refusal) { self->refuse(problem_of(refusal)); },
        kind_ == FrameKind::embed ? Models::Wanted::model : Models::Wanted::text);
  }

  void ask(const std::shared_ptr<WorkerLink>& worker) {
    const auto self = shared_from_this();
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      worker_ = worker;
    }
    // Not under the lock: a worker that has just ended answers at once.
    const uint64_t id = worker->call(
        kind_, body_,
        [self](const Event* error, const json::Value& reply) {
          if (!error) return self->answer(reply);
          if (error->untaken && self->goes_again()) return self->acquire();
          self->refuse(problem_of(*error));
        },
        nullptr, [self] { self->taken(); });
    const std::lock_guard lock(mutex_);
    if (worker_ == worker) id_ = id;  // else it went again, to another one
    if (gone_) worker->cancel(id);
  }

  void taken() {
    const std::lock_guard lock(mutex_);
    body_ = {};
  }

  // Once: what ends the next worker too, unread, is told.
  bool goes_again() {
    const std::lock_guard lock(mutex_);
    if (ended_ || again_) return false;
    again_ = true;
    worker_ = nullptr;
    id_ = 0;
    return true;
  }

  void answer(const json::Value& reply) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    call_.answer(200, shape_(reply));
    services_.counters.count(std::string(call_.route), 200);
    end();
  }

  void refuse(const Problem& problem) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    call_.refuse(problem);
    services_.counters.count(std::string(call_.route), problem);
    end();
  }

  void gone() {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    gone_ = true;
    if (worker_ && id_) worker_->cancel(id_);
    services_.counters.count(std::string(call_.route), 499);
    end();
  }

  // Lets go of what refers back to this.
  void end() {
    ended_ = true;
    worker_ = nullptr;
    call_.exchange = nullptr;
  }

  Services& services_;
  std::mutex mutex_;
  Call call_;
  std::string model_;
  FrameKind kind_{};
  json::Object body_;
  std::function<json::Object(const json::Value&)> shape_;
  std::shared_ptr<WorkerLink> worker_;
  uint64_t id_ = 0;
  bool ended_ = false, gone_ = false, again_ = false;
};

}  // namespace

void ask_worker(Services& services, Call call, const std::string& model, FrameKind kind, json::Object body,
                std::function<json::Object(const json::Value& reply)> shape) {
  const std::string id = services.models.resolve(model);
  std::make_shared<Ask>(services, std::move(call), std::move(body), std::move(shape))->begin(id, kind);
}

void look_at_worker(Services& services, const std::string& model,
                    std::function<void(const json::Value& figures)> then) {
  const std::shared_ptr<WorkerLink> worker = services.models.at_hand(model);
  if (!worker) return then({});
  worker->look([then = std::move(then)](const Event* error, const json::Value& figures) {
    then(error ? json::Value() : figures);
  });
}

void look_at_default(Services& services, std::function<void(const json::Value& figures)> then) {
  look_at_worker(services, services.models.names().default_id(), std::move(then));
}

}  // namespace hearth::server
