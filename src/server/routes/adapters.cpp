// GET /v1/adapters: what is mounted, on which model. POST /v1/adapters mounts one, DELETE /v1/adapters/{id} unmounts
// it.
#include <algorithm>
#include <map>
#include <mutex>

#include "base/printable.h"
#include "formats/adapter.h"
#include "server/routes/adapter_list.h"
#include "server/routes/routes.h"
#include "server/routes/worker_calls.h"

namespace hearth::server {
namespace {

constexpr Field kFields[] = {
    {"id", FieldType::string, "what requests call it [the folder's name]; without path: the folder, too", 1, 128},
    {"path", FieldType::string, "its folder on the server: absolute, or inside the folder of adapters", 1, 4096},
    {"model", FieldType::string, "a name of /v1/models [the default one]", 0, 1024},
    {"force", FieldType::boolean, "true mounts one that was trained on another model, too [false]"},
};
std::vector<std::span<const Field>> fields() { return {kFields}; }

json::Object shown(const std::string& model, const MountedAdapter& adapter) {
  json::Object o;
  o["id"] = adapter.id;
  o["object"] = "adapter";
  o["model"] = model;
  o["default"] = adapter.is_default;
  for (const char* key : {"base", "revision", "compatible", "mismatch", "rank", "bytes"})
    if (const json::Value* fact = adapter.facts.find(key)) o[key] = *fact;
  return o;
}

// Asks the workers that are there how many requests use what, then answers.
class Listing : public std::enable_shared_from_this<Listing> {
 public:
  Listing(Services& services, Call call) : services_(services), call_(std::move(call)) {}

  void begin() {
    for (const AdapterView& view : services_.models.adapters())
      if (view.is_resident) uses_.try_emplace(view.model);
    open_ = uses_.size();
    if (open_ == 0) return answer();
    std::vector<std::string> models;
    for (const auto& [model, none] : uses_) models.push_back(model);
    for (const std::string& model : models)
      look_at_worker(services_, model, [self = shared_from_this(), model](const json::Value& figures) {
        const json::Value* uses = figures.get("adapters");
        self->add(model, uses ? *uses : json::Value());
      });
  }

 private:
  void add(const std::string& model, json::Value uses) {
    {
      const std::lock_guard lock(mutex_);
      uses_[model] = std::move(uses);
      if (--open_ > 0) return;
    }
    answer();
  }

  void answer() const {
    json::Array data;
    for (const AdapterView& view : services_.models.adapters()) {
      json::Object one = shown(view.model, view.adapter);
      one["resident"] = view.is_resident;
      const auto uses = uses_.find(view.model);
      const json::Value* count = uses == uses_.end() ? nullptr : uses->second.get(view.adapter.id);
      one["uses"] = count ? *count : json::Value(0);
      data.push_back(std::move(one));
    }
    answer_list(call_, std::move(data));
  }

  Services& services_;
  Call call_;
  std::mutex mutex_;
  size_t open_ = 0;
  std::map<std::string, json::Value> uses_;  // by model
};

std::string text(const json::Object& body, std::string_view key) {
  const json::Value* value = present(body, key);
  return value ? *value->string() : std::string();
}

// What `make` throws is the field's fault; nothing of its sentence names a folder.
template <class Make>
auto field(const char* name, const Make& make) {
  try {
    return make();
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError(name, fmt::format("{}: {}", name, error.what()));
  }
}

void mount(Services& services, Call call) {
  const json::Object body = call.body();
  check_fields(body, kFields);
  MountedAdapter adapter;
  adapter.id = text(body, "id");
  std::string path = text(body, "path");
  if (path.empty()) path = adapter.id;
  if (path.empty()) throw RequestError("path", "path or id is required");
  const std::filesystem::path folder = adapter_folder(services.settings.adapters, path);
  field("id", [&] {
    if (adapter.id.empty()) adapter.id = formats::adapter_id_of(folder);
    formats::check_adapter_id(adapter.id);
    return 0;
  });
  const json::Value* force = present(body, "force");
  adapter.force = force && force->as_bool("force");
  const std::string model = services.models.resolve(text(body, "model"));
  adapter.files = field("path", [&] { return open_adapter(folder); });
  const MountedAdapter asked = adapter;
  services.models.mount(
      model, std::move(adapter),
      [call, model, asked](const Event* error, const json::Object& facts) {
        if (error) return call.refuse(problem_of(*error));
        MountedAdapter mounted = asked;
        mounted.facts = facts;
        call.answer(200, shown(model, mounted));
      },
      [call](const Refusal& refusal) { call.refuse(problem_of(refusal)); });
}

// The model that ?model= names; without it the default one if the adapter is mounted there, else the only one where it
// is. Nullopt: none.
std::optional<std::string> model_of(Services& services, const Call& call) {
  if (const std::string named = call.query("model"); !named.empty()) return services.models.resolve(named);
  std::vector<std::string> models;
  for (const AdapterView& view : services.models.adapters())
    if (view.adapter.id == call.parameter) models.push_back(view.model);
  if (models.size() < 2) return models.empty() ? std::nullopt : std::optional(models.front());
  for (const ModelView& view : services.models.resident())
    if (view.is_default && std::ranges::find(models, view.id) != models.end()) return view.id;
  throw RequestError("model", fmt::format("adapter {} is mounted on {}: say which with ?model=",
                                          printable(call.parameter), fmt::join(models, " and ")));
}

void refuse_unknown(const Call& call, const std::string& message) {
  call.refuse({.status = 404,
               .type = "invalid_request_error",
               .message = message,
               .param = {},
               .code = "adapter_not_found",
               .retry_after_s = 0,
               .more = {}});
}

void unmount(Services& services, Call call) {
  const std::optional<std::string> model = model_of(services, call);
  if (!model) return refuse_unknown(call, fmt::format("adapter {} is not mounted", printable(call.parameter)));
  try {
    services.models.unmount(
        *model, call.parameter,
        [call, model](const Event* error, const json::Object&) {
          if (error) return call.refuse(problem_of(*error));
          json::Object o;
          o["id"] = call.parameter;
          o["object"] = "adapter";
          o["model"] = *model;
          o["deleted"] = true;
          call.answer(200, o);
        },
        [call](const Refusal& refusal) { call.refuse(problem_of(refusal)); });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    refuse_unknown(call, error.what());
  }
}

}  // namespace

const Route kAdapters = {
    .method = "GET",
    .path = "/v1/adapters",
    .summary = "the adapters that are mounted",
    .handle = [](Services& services, Call call) { std::make_shared<Listing>(services, std::move(call))->begin(); },
};
const Route kMountAdapter = {
    .method = "POST",
    .path = "/v1/adapters",
    .access = Access::control,
    .body = Body::control,
    .summary = "mounts an adapter",
    .fields = fields,
    .handle = mount,
};
const Route kUnmountAdapter = {
    .method = "DELETE",
    .path = "/v1/adapters/{id}",
    .access = Access::control,
    .summary = "unmounts an adapter when the requests that use it have ended",
    .handle = unmount,
};

}  // namespace hearth::server
