// GET /v1/adapters/available: the adapters in the server's folder, and whether each was trained on the model. The
// model's worker reads their configs.
#include <algorithm>
#include <mutex>

#include "base/printable.h"
#include "formats/adapter.h"
#include "server/routes/routes.h"

namespace hearth::server {
namespace {

// Of one model; what the worker says comes in any order, the answer has the folders' order.
class Listing : public std::enable_shared_from_this<Listing> {
 public:
  Listing(Services& services, Call call, ModelView model)
      : services_(services), call_(std::move(call)), model_(std::move(model)) {
    for (const std::string& name : adapters_in(services_.settings.adapters)) items_.push_back(item(name));
    open_ = items_.size();
  }

  void ask(const std::shared_ptr<WorkerLink>& worker) {
    if (items_.empty()) return answer();
    for (size_t i = 0; i < items_.size(); ++i) {
      const std::string name = *items_[i].find("path")->string();
      try {
        formats::check_adapter_id(name);
        const AdapterFiles config = open_adapter_config(services_.settings.adapters / name);
        json::Object body;
        body["name"] = name;
        body["files"] = config.names_json();
        body["repo"] = model_.repo;
        body["revision"] = model_.revision;
        worker->call(
            FrameKind::adapter_describe, std::move(body),
            [self = shared_from_this(), i](const Event* error, const json::Value& reply) {
              const json::Value* facts = error ? nullptr : reply.get("adapter");
              self->add(i, facts && facts->object() ? *facts->object() : json::Object(), error ? error->text : "");
            },
            config.files);
      } catch (const Error& error) {
        add(i, {}, error.what());
      }
    }
  }

 private:
  json::Object item(const std::string& name) const {
    json::Object o;
    o["id"] = name;
    o["object"] = "adapter";
    o["path"] = name;
    o["model"] = model_.id;
    const auto mounted = services_.models.adapters();
    o["mounted"] = std::ranges::any_of(
        mounted, [&](const AdapterView& view) { return view.model == model_.id && view.adapter.id == name; });
    return o;
  }

  void add(size_t i, const json::Object& facts, const std::string& problem) {
    {
      const std::lock_guard lock(mutex_);
      for (const char* key : {"base", "revision", "compatible", "mismatch"})
        if (const json::Value* fact = facts.find(key)) items_[i][key] = *fact;
      if (!problem.empty()) {
        items_[i]["compatible"] = false;
        items_[i]["problem"] = problem;
      }
      if (--open_ > 0) return;
    }
    answer();
  }

  void answer() {
    json::Array data;
    for (json::Object& item : items_) data.push_back(std::move(item));
    json::Object o;
    o["object"] = "list";
    o["data"] = std::move(data);
    call_.answer(200, o);
  }

  Services& services_;
  Call call_;
  ModelView model_;
  std::mutex mutex_;
  std::vector<json::Object> items_;
  size_t open_ = 0;
};

void available(Services& services, Call call) {
  const std::string model = services.models.resolve(call.query("model"));
  services.models.acquire(
      model,
      [&services, model, call](const std::shared_ptr<WorkerLink>& worker, const json::Object&) {
        for (const ModelView& view : services.models.resident())
          if (view.id == model) return std::make_shared<Listing>(services, call, view)->ask(worker);
        call.refuse(problem_of(Refusal{ErrorKind::device_lost, "the model's worker has ended", "worker_lost"}));
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
