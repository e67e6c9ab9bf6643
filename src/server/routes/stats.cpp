// GET /stats, /v1/stats (spec server 3.4)
#include "base/clock.h"
#include "server/routes/routes.h"
#include "server/routes/worker_calls.h"

namespace hearth::server {
namespace {

json::Value get(const json::Value& from, const char* key, json::Value fallback = 0) {
  const json::Value* value = from.get(key);
  return value ? *value : fallback;
}

json::Object document(Services& services, const json::Value& rows) {
  json::Object o, server, cache, disk, kept, admission, ram, batch;
  json::Array models;
  std::string default_id;
  json::Value facts = json::Object();
  for (const ModelView& view : services.models.resident()) {
    json::Object one;
    one["id"] = view.id;
    one["state"] = name_of(view.state);
    one["pinned"] = view.pinned;
    one["open_requests"] = view.open_requests;
    one["restarts"] = view.restarts;
    models.push_back(std::move(one));
    if (view.is_default) {
      default_id = view.id;
      facts = view.facts;
    }
  }
  server["owner"] = services.owner_id;
  server["model"] = default_id;
  server["started_at"] = iso8601(std::chrono::time_point_cast<std::chrono::nanoseconds>(services.started_at));
  server["version"] = services.settings.version;
  server["numerics"] = services.settings.numerics;
  server["row_classes"] = 1;
  server["warm_turn_kl"] = 0;  // no row's bits depend on what was cached
  o["server"] = std::move(server);
  o["models"] = std::move(models);
  cache["entries"] = get(rows, "prefix_entries");
  cache["bytes"] = get(rows, "prefix_bytes");
  cache["max_bytes"] = get(facts, "prompt_cache_bytes");
  cache["hits"] = services.counters.cache_hits.load();
  cache["misses"] = services.counters.cache_misses.load();
  o["prompt_cache"] = std::move(cache);
  disk["entries"] = get(rows, "disk_entries");
  disk["bytes"] = get(rows, "disk_bytes");
  disk["max_bytes"] = get(facts, "disk_cache_max_bytes");
  disk["restores"] = get(rows, "disk_restores");
  disk["spills"] = get(rows, "disk_spills");
  o["disk_cache"] = std::move(disk);
  kept["entries"] = services.responses.entries();
  kept["bytes"] = services.responses.bytes();
  kept["max_bytes"] = services.responses.limits().bytes_max;
  kept["ttl_ms"] = static_cast<int64_t>(services.responses.limits().ttl.count());
  o["response_store"] = std::move(kept);
  o["kv_quant"] = get(facts, "kv_quant", nullptr);
  admission["max_safe_context"] = get(facts, "context_window");
  admission["memory_budget_bytes"] = services.settings.memory_budget;
  admission["weights_bytes"] = get(facts, "weights_bytes");
  admission["memory_bytes"] = get(facts, "memory_bytes");
  admission["usable_bytes"] = services.settings.memory_budget;
  ram["usable_bytes"] = services.settings.memory_budget;
  ram["planned_bytes"] = get(facts, "memory_bytes");
  admission["ram"] = std::move(ram);
  admission["vram"] = json::Object();
  o["admission"] = std::move(admission);
  batch["configured"] = get(facts, "batch");
  batch["active_rows"] = get(rows, "active");
  batch["pending_rows"] = get(rows, "waiting");
  batch["parked_rows"] = get(rows, "parked");
  batch["submitted_rows"] = get(rows, "submitted");
  batch["cancelled_rows"] = get(rows, "cancelled");
  batch["pages_total"] = get(rows, "pages_total");
  batch["pages_free"] = get(rows, "pages_free");
  batch["kv_bytes"] = get(rows, "kv_bytes");
  o["batch"] = std::move(batch);
  o["last_token_age_s"] = static_cast<double>(services.models.silence_ms()) / 1000;
  return o;
}

// Of the default model, if it is loaded.
void stats(Services& services, Call call) {
  look_at_default(services, [&services, call](const json::Value& rows) { call.answer(200, document(services, rows)); });
}

}  // namespace

const Route kStats = {.method = "GET", .path = "/stats", .summary = "figures of the server", .handle = stats};
const Route kStatsV1 = {.method = "GET", .path = "/v1/stats", .summary = "figures of the server", .handle = stats};

}  // namespace hearth::server
