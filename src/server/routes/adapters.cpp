// GET /v1/adapters: what is mounted, on which model. Adapters are mounted at the start (serve --adapter DIR).
#include "server/routes/routes.h"

namespace hearth::server {

const Route kAdapters = {
    .method = "GET",
    .path = "/v1/adapters",
    .summary = "the adapters that are mounted",
    .handle =
        [](Services& services, Call call) {
          json::Array data;
          for (const ModelView& view : services.models.resident()) {
            const json::Value* adapter = view.facts.find("adapter");
            if (!adapter) continue;
            json::Object one;
            one["id"] = *adapter;
            one["model"] = view.id;
            one["default"] = true;
            data.push_back(std::move(one));
          }
          json::Object o;
          o["object"] = "list";
          o["data"] = std::move(data);
          call.answer(200, o);
        },
};

}  // namespace hearth::server
