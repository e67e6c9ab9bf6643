// GET /v1/models, /v1/models/{id}: one shape for both dialects (spec server 3.3).
#include <chrono>

#include "base/clock.h"
#include "server/routes/routes.h"

namespace hearth::server {
namespace {

json::Object entry(const ModelView& view) {
  const auto fact = [&](const char* key, json::Value fallback) {
    const json::Value* value = view.facts.find(key);
    return value ? *value : fallback;
  };
  json::Object o;
  o["id"] = view.id;
  o["object"] = "model";
  o["type"] = "model";
  o["created"] = view.modified_s;
  o["created_at"] = iso8601(std::chrono::sys_seconds(std::chrono::seconds(view.modified_s)));
  o["owned_by"] = "hearth";
  o["display_name"] = view.id;
  o["context_window"] = fact("context_window", nullptr);
  o["vision"] = fact("vision", false);
  o["reasoning"] = fact("reasoning", nullptr);
  o["tools"] = fact("tools", nullptr);
  o["resident"] = view.state == ModelState::ready;
  o["serving"] = view.is_default;
  return o;
}

}  // namespace

const Route kModels = {
    .method = "GET",
    .path = "/v1/models",
    .summary = "the models that may be asked for",
    .handle =
        [](Services& services, Call call) {
          json::Array data;
          for (const ModelView& view : services.models.list()) data.push_back(entry(view));
          json::Object o;
          o["object"] = "list";
          o["first_id"] = data.size() > 0 ? *data[0].get("id") : json::Value();
          o["last_id"] = data.size() > 0 ? *data[data.size() - 1].get("id") : json::Value();
          o["has_more"] = false;
          o["data"] = std::move(data);
          call.answer(200, o);
        },
};

const Route kModel = {
    .method = "GET",
    .path = "/v1/models/{id}",
    .summary = "one model",
    .handle =
        [](Services& services, Call call) {
          const std::string id = services.models.resolve(call.parameter);
          for (const ModelView& view : services.models.list())
            if (view.id == id) return call.answer(200, entry(view));
          throw ClientError(ErrorKind::not_found, fmt::format("there is no model {}", call.parameter));
        },
};

}  // namespace hearth::server
