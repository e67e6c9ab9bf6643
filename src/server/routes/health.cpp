// GET /health, /ready, /version, /v1
#include "server/routes/routes.h"

namespace hearth::server {
const Route kHealth = {
    .method = "GET",
    .path = "/health",
    .access = Access::open,
    .summary = "the server process is alive",
    .handle =
        [](Services&, Call call) {
          call.answer(
              {.status = 200, .headers = {}, .body = "{\"status\": \"ok\"}", .content_type = "application/json"});
        },
};

const Route kReady = {
    .method = "GET",
    .path = "/ready",
    .access = Access::open,
    .summary = "200: the default model answers; else 503 with the reason",
    .handle =
        [](Services& services, Call call) {
          std::string reason;
          for (const ModelView& view : services.models.resident())
            if (view.is_default && view.state != ModelState::ready)
              reason = "the model is " + std::string(name_of(view.state));
          const int64_t silence = services.models.silence_ms();
          if (services.models.is_wedged()) reason = "requests run and no token comes";
          json::Object o;
          o["status"] = reason.empty() ? "ready" : "not_ready";
          if (!reason.empty()) o["reason"] = reason;
          o["last_token_age_s"] = static_cast<double>(silence) / 1000;
          call.answer(reason.empty() ? 200 : 503, o);
        },
};

const Route kVersion = {
    .method = "GET",
    .path = "/version",
    .summary = "the build",
    .handle =
        [](Services& services, Call call) {
          json::Object o;
          o["version"] = services.settings.version;
          call.answer(200, o);
        },
};

const Route kIndex = {
    .method = "GET",
    .path = "/v1",
    .summary = "the routes there are",
    .handle =
        [](Services&, Call call) {
          json::Array list;
          for (const Route* route : routes()) {
            json::Object one;
            one["method"] = route->method;
            one["path"] = route->path;
            one["summary"] = route->summary;
            list.push_back(std::move(one));
          }
          json::Object o;
          o["object"] = "list";
          o["data"] = std::move(list);
          call.answer(200, o);
        },
};

}  // namespace hearth::server
