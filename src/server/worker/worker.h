// The worker process of one model (spec server 1, 5): frames in, answers out.
//
// Four threads: the caller's receives frames; one turns prompts into ids; the engine thread sees ids and tensors only;
// the text thread turns tokens into words, one step behind, and sends.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "decode/embed.h"
#include "decode/engine.h"
#include "decode/prefix_disk.h"
#include "decode/scheduler.h"
#include "model/model_text.h"
#include "server/limits.h"
#include "server/worker/call_session.h"
#include "text/tools/dialect.h"

namespace hearth::server {

struct WorkerModel {
  std::string name;
  std::unique_ptr<decode::Engine> engine;      // of a model that writes text
  std::unique_ptr<decode::Embedder> embedder;  // of an embedding model
  std::shared_ptr<const model::Model> opened;  // without either: what its words come from,
  bool embedding = false;                      //   and whether it is an embedding model
  std::unique_ptr<model::ModelText> text;      // null: the facts are all, and what configs of adapters say behind them
  int64_t adapter_bytes = 0;                   // kept for adapters that come later
  Limits limits;
  json::Object facts;     // what the front shows of it (spec server 3.3, 3.4)
  json::Object defaults;  // sampling fields of the server's flags and the model's generation_config, "max_tokens" too
  std::optional<text::ToolDialect> tool_dialect;  // absent: as template and vocabulary say
  decode::SchedulerOptions scheduler;
  std::optional<decode::PrefixDiskOptions> disk;  // where prefixes outlive the process
};

// Reads the model; called for the load frame. May throw Error: the worker reports it and ends.
using LoadModel = std::function<WorkerModel(const std::function<void(int64_t done, int64_t total)>& progress)>;

// Of a worker of an embedding model, with or without its weights.
CallAnswers embed_calls(WorkerModel model);

// Serves the front behind fd (owned) until it closes, drains, or breaks the wire's rules. Returns the exit code.
int run_worker(int fd, const LoadModel& load);

}  // namespace hearth::server
