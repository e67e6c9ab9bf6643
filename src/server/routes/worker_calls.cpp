#include "server/routes/worker_calls.h"

namespace hearth::server {

void ask_worker(Services& services, Call call, const std::string& model, FrameKind kind, json::Object body,
                std::function<json::Object(const json::Value& reply)> shape) {
  struct State {
    Call call;
    json::Object body;
    std::function<json::Object(const json::Value&)> shape;
  };
  const std::string id = services.models.resolve(model);
  auto state = std::make_shared<State>(State{std::move(call), std::move(body), std::move(shape)});
  const auto refuse = [state](const Problem& problem) { state->call.refuse(problem); };
  services.models.acquire(
      id,
      [state, kind, refuse](const std::shared_ptr<WorkerLink>& worker, const json::Object&) {
        worker->call(kind, std::move(state->body), [state, refuse](const Event* error, const json::Value& reply) {
          if (error) return refuse(problem_of(*error));
          state->call.answer(200, state->shape(reply));
        });
      },
      [refuse](const Refusal& refusal) { refuse(problem_of(refusal)); });
}

}  // namespace hearth::server
