// What a model's headers say, read by a process of its own in the workers' sandbox: a file that a reader stumbles over
// costs that process alone.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/json.h"
#include "server/front/worker_link.h"
#include "server/refusal.h"

namespace hearth::server {

struct ModelHeaders {
  json::Object facts;              // {model_type, size_bytes, quant_bits, vision, support_tier, embedding, fit}
  std::optional<Refusal> refusal;  // instead of them
  bool lasting = true;             // the same files say the same again; false: the process could not do its work
};

// One such process, which lives as long as this. One thread, and not a link's. Every wait throws Error{cancelled} once
// `stop` is set.
class HeaderReader {
 public:
  using Milliseconds = std::chrono::milliseconds;
  HeaderReader(const WorkerCommand& command, std::filesystem::path model, const std::atomic<bool>& stop);

  // Waits for its word, at most so long.
  ModelHeaders headers(Milliseconds at_most);

  // Behind headers(): what an adapter's config says, read from the open file: body as of FrameKind::adapter_describe.
  // Throws ClientError with what is wrong with it; device_lost: the process is gone.
  json::Object describe(json::Object body, const Descriptors& config, Milliseconds at_most);

 private:
  bool wait(Milliseconds at_most, const std::function<bool()>& over);  // false: it is not over yet

  const std::filesystem::path model_;
  const std::atomic<bool>& stop_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<ModelHeaders> headers_;
  struct Description {
    std::optional<Refusal> refusal;
    json::Object facts;
  };
  std::optional<Description> description_;
  std::optional<WorkerLink> link_;  // last: its threads use the rest
};

// The headers alone.
ModelHeaders read_headers(const WorkerCommand& command, const std::filesystem::path& model,
                          std::chrono::milliseconds at_most, const std::atomic<bool>& stop);

}  // namespace hearth::server
