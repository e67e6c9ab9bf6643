// POST /api/models/load, /api/models/unload, /api/models/pin; GET /api/ps
#include "server/front/keep_alive.h"
#include "server/routes/routes.h"

namespace hearth::server {
namespace {

constexpr Field kFields[] = {
    {"model", FieldType::string, "a name of /v1/models", 1, 1024, {}, true},
    {"keep_alive", FieldType::string_or_number, "how long it stays loaded when idle: seconds or 10m; -1: for good"},
    {"pinned", FieldType::boolean, "pin: true keeps it loaded [true]"},
};
std::vector<std::span<const Field>> fields() { return {kFields}; }

json::Object checked(const Call& call) {
  json::Object body = call.body();
  check_fields(body, kFields);
  return body;
}

json::Object state(Services& services, const std::string& id) {
  json::Object o;
  o["model"] = id;
  for (const ModelView& view : services.models.resident())
    if (view.id == id) o["state"] = name_of(view.state);
  if (!o.contains("state")) o["state"] = "absent";
  return o;
}

void load(Services& services, Call call) {
  const json::Object body = checked(call);
  const std::string id = services.models.resolve(*body.find("model")->string());
  if (const json::Value* keep = body.find("keep_alive"); keep && !keep->is_null())
    services.models.keep_alive(id, parse_keep_alive(keep->string() ? *keep->string() : json::dump(*keep)));
  services.models.acquire(
      id,
      [&services, id, call](const std::shared_ptr<WorkerLink>&, const json::Object&) {
        call.answer(200, state(services, id));
      },
      [call](const Refusal& refusal) { call.refuse(problem_of(refusal)); });
}

void unload(Services& services, Call call) {
  const std::string id = services.models.resolve(*checked(call).find("model")->string());
  services.models.unload(id);
  call.answer(200, state(services, id));
}

void pin(Services& services, Call call) {
  const json::Object body = checked(call);
  const std::string id = services.models.resolve(*body.find("model")->string());
  const json::Value* pinned = body.find("pinned");
  services.models.pin(id, pinned && pinned->is_bool() ? pinned->as_bool("pinned") : true);
  call.answer(200, state(services, id));
}

void ps(Services& services, Call call) {
  json::Array list;
  for (const ModelView& view : services.models.resident()) {
    json::Object o;
    o["model"] = view.id;
    o["state"] = name_of(view.state);
    o["pinned"] = view.pinned;
    o["default"] = view.is_default;
    o["open_requests"] = view.open_requests;
    o["running"] = view.activity.running;
    o["waiting"] = view.activity.waiting;
    const auto& rate = view.activity.tokens_per_second;
    o["tokens_per_second"] = rate ? json::Value(*rate) : json::Value();
    o["unload_in_ms"] = view.unload_in ? json::Value(static_cast<int64_t>(view.unload_in->count())) : json::Value();
    o["restarts"] = view.restarts;
    o["pid"] = view.pid > 0 ? json::Value(static_cast<int64_t>(view.pid)) : json::Value();
    for (const char* key : {"memory_bytes", "weights_bytes", "kv_bytes", "context_window", "batch", "kv", "executor",
                            "threads", "numerics", "load_ms"})
      if (const json::Value* fact = view.facts.find(key)) o[key] = *fact;
    if (!view.problem.empty()) o["problem"] = view.problem;
    list.push_back(std::move(o));
  }
  json::Object o;
  o["models"] = std::move(list);
  call.answer(200, o);
}

constexpr Route post(std::string_view path, std::string_view summary, void (*handle)(Services&, Call)) {
  return {.method = "POST",
          .path = path,
          .access = Access::control,
          .body = Body::control,
          .summary = summary,
          .fields = fields,
          .handle = handle};
}

}  // namespace

const Route kLoad = post("/api/models/load", "loads a model", load);
const Route kUnload = post("/api/models/unload", "unloads a model when its requests have ended", unload);
const Route kPin = post("/api/models/pin", "keeps a model loaded, or not", pin);
const Route kPs = {.method = "GET",
                   .path = "/api/ps",
                   .access = Access::control,
                   .summary = "the models that are loaded",
                   .handle = ps};

}  // namespace hearth::server
