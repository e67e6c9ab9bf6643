// GET /v1/adapters/available: the adapters in the server's folder, and whether each was trained on the model.
#include <algorithm>

#include "server/routes/adapter_list.h"
#include "server/routes/routes.h"

namespace hearth::server {
namespace {

json::Object shown(const AvailableAdapter& adapter, const std::string& model, const std::vector<AdapterView>& mounted) {
  json::Object o;
  o["id"] = adapter.name;
  o["object"] = "adapter";
  o["path"] = adapter.name;
  o["model"] = model;
  o["mounted"] = std::ranges::any_of(
      mounted, [&](const AdapterView& view) { return view.model == model && view.adapter.id == adapter.name; });
  for (const char* key : {"base", "revision", "compatible", "mismatch"})
    if (const json::Value* fact = adapter.facts.find(key)) o[key] = *fact;
  if (!adapter.problem.empty()) {
    o["compatible"] = false;
    o["problem"] = adapter.problem;
  }
  return o;
}

void available(Services& services, Call call) {
  const std::string model = services.models.resolve(call.query("model"));
  services.library.adapters(
      model, services.settings.adapters,
      [&services, call, model](const std::vector<AvailableAdapter>& adapters) {
        const std::vector<AdapterView> mounted = services.models.adapters();
        json::Array data;
        for (const AvailableAdapter& adapter : adapters) data.push_back(shown(adapter, model, mounted));
        answer_list(call, std::move(data));
      },
      [call](const Refusal& refusal) { call.refuse(problem_of(refusal)); });
}

}  // namespace

const Route kAdaptersAvailable = {
    .method = "GET",
    .path = "/v1/adapters/available",
    .summary = "the adapters in the server's folder",
    .handle = available,
};

}  // namespace hearth::server
