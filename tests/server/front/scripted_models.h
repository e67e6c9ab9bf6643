// Models whose workers follow a script in place of a model: tests/server/tools/scripted_worker.cpp.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "server/front/links.h"
#include "server/front/models.h"
#include "support/temp_dir.h"

namespace hearth::server {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Outcome {
  bool ready = false;
  Refusal refusal;
};

// Models named by scripts of tests/server/tools/scripted_worker.cpp, all of them allowed.
class ScriptedModels : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& script) { dir_.write(name + ".gguf", script); }
  std::string path(const std::string& name) const { return (dir_.path() / (name + ".gguf")).string(); }

  static std::string program_path() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tool_scripted_worker";
  }

  Models& start(const std::vector<std::string>& names, int64_t budget = 1000,
                const std::function<void(ModelsOptions&)>& change = {}) {
    ModelsOptions o;
    for (const std::string& name : names) o.allowed.push_back(path(name));
    o.memory_budget = budget;
    const std::string program = program_path();
    o.command = [program](const hub::FoundModel& model, int64_t bytes) {
      return WorkerCommand{.argv = {program, model.path.string(), std::to_string(bytes)}, .environment = {}};
    };
    o.text_command = [program](const hub::FoundModel& model) {
      return WorkerCommand{.argv = {program, model.path.string(), "0", "text"}, .environment = {}};
    };
    if (change) change(o);
    const auto nothing = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
    models_ = std::make_unique<Models>(o, hub::Store(dir_.path() / "hub", dir_.path() / "config", nothing));
    return *models_;
  }

  // One that belongs to no Models.
  std::shared_ptr<WorkerLink> start_worker(Links& links, const std::string& name) const {
    return links.start({.argv = {program_path(), path(name), "1000"}, .environment = {}},
                       {.loaded = [](const json::Object&) {},
                        .progress = [](int64_t, int64_t) {},
                        .failed = [](const Event&) {},
                        .lost = [] {}});
  }

  std::future<Outcome> acquire(const std::string& id, std::shared_ptr<WorkerLink>* link = nullptr,
                               Models::Wanted wanted = Models::Wanted::model) {
    auto promise = std::make_shared<std::promise<Outcome>>();
    models_->acquire(
        id,
        [promise, link](const std::shared_ptr<WorkerLink>& worker, const json::Object&) {
          if (link) *link = worker;
          promise->set_value({.ready = true, .refusal = {}});
        },
        [promise](const Refusal& refusal) { promise->set_value({.ready = false, .refusal = refusal}); }, wanted);
    return promise->get_future();
  }

  // A whole request: the model's worker, and its answer. The kind of the event that ends it.
  std::future<Event> ask(const std::string& id) {
    auto promise = std::make_shared<std::promise<Event>>();
    models_->acquire(
        id,
        [promise](const std::shared_ptr<WorkerLink>& worker, const json::Object&) {
          worker->submit({}, [promise](const Event& event) {
            if (event.kind == Event::Kind::finish || event.kind == Event::Kind::error) promise->set_value(event);
          });
        },
        [promise](const Refusal& refusal) {
          Event event{.kind = Event::Kind::error};
          event.text = refusal.message;
          promise->set_value(event);
        });
    return promise->get_future();
  }

  template <class T>
  T get(std::future<T> future, std::chrono::milliseconds within = 20s) {
    if (future.wait_for(within) != std::future_status::ready) throw std::runtime_error("no answer in time");
    return future.get();
  }

  // A call that needs the words of the model alone; what answers it, "text worker" or "model".
  std::future<std::string> ask_text(const std::string& id) {
    auto promise = std::make_shared<std::promise<std::string>>();
    models_->acquire(
        id,
        [promise](const std::shared_ptr<WorkerLink>& worker, const json::Object&) {
          worker->call(FrameKind::tokenize, {}, [promise](const Event* error, const json::Value& reply) {
            promise->set_value(error ? error->code : reply.get("by")->as_string("by"));
          });
        },
        [promise](const Refusal& refusal) { promise->set_value(refusal.message); }, Models::Wanted::text);
    return promise->get_future();
  }

  void serve(const std::string& id) {
    const Event event = get(ask(id));
    EXPECT_EQ(event.kind, Event::Kind::finish) << id << ": " << event.text;
  }

  std::vector<std::string> events() const {
    std::vector<std::string> lines;
    std::ifstream file(dir_.path() / "events");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  int64_t count(const std::string& event) const {
    const auto all = events();
    return std::count(all.begin(), all.end(), event);
  }
  ModelView view(const std::string& id) const {
    for (const ModelView& v : models_->list())
      if (v.id == id) return v;
    throw std::runtime_error("no " + id);
  }
  bool comes(const std::function<bool()>& what, std::chrono::milliseconds within = 10s) const {
    for (const auto end = Clock::now() + within; Clock::now() < end; std::this_thread::sleep_for(5ms))
      if (what()) return true;
    return what();
  }
  bool is(const std::string& id, ModelState state) const { return view(id).state == state; }

  test::TempDir dir_;
  std::unique_ptr<Models> models_;
};

}  // namespace hearth::server
