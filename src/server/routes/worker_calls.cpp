#include "server/routes/worker_calls.h"

#include <mutex>

#include "server/front/errand.h"

namespace hearth::server {
namespace {

// One call under way. The reply comes on the link's thread, the client's end on an I/O thread: both under the lock.
class Ask : public std::enable_shared_from_this<Ask> {
 public:
  Ask(Services& services, Call call, std::function<json::Object(const json::Value&)> shape)
      : services_(services), call_(std::move(call)), shape_(std::move(shape)) {
    call_.request.body.clear();
  }

  void begin(const std::string& model, FrameKind kind, json::Object body) {
    model_ = model;
    wanted_ = kind == FrameKind::embed ? Models::Wanted::model : Models::Wanted::text;
    errand_ = Errand::make([kind, body = std::move(body), weak = weak_from_this()](
                               WorkerLink& worker, const std::shared_ptr<Errand>& errand) {
      const auto reply = [ask = weak.lock()](const Event* error, const json::Value& document) {
        ask->on_reply(error, document);
      };
      return worker.call(kind, body, reply, nullptr, errand->taken());
    });
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
          self->errand_->give(worker);
        },
        [self = shared_from_this()](const Refusal& refusal) { self->refuse(problem_of(refusal)); }, wanted_);
  }

  void on_reply(const Event* error, const json::Value& document) {
    if (!error) return answer(document);
    if (errand_->goes_again(*error)) return acquire();
    refuse(problem_of(*error));
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
    errand_->cancel();
    services_.counters.count(std::string(call_.route), 499);
    end();
  }

  // Lets go of what refers back to this.
  void end() {
    ended_ = true;
    errand_->end();
    call_.exchange = nullptr;
  }

  Services& services_;
  std::mutex mutex_;
  Call call_;
  std::string model_;
  Models::Wanted wanted_{};
  std::function<json::Object(const json::Value&)> shape_;
  std::shared_ptr<Errand> errand_;
  bool ended_ = false;
};

}  // namespace

void ask_worker(Services& services, Call call, const std::string& model, FrameKind kind, json::Object body,
                std::function<json::Object(const json::Value& reply)> shape) {
  const std::string id = services.models.resolve(model);
  std::make_shared<Ask>(services, std::move(call), std::move(shape))->begin(id, kind, std::move(body));
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
