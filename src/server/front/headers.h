// What a model's headers say, read by a process of its own in the workers' sandbox: a file that a reader stumbles over
// costs that process alone.
#pragma once
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>

#include "base/json.h"
#include "server/front/refusal.h"
#include "server/front/worker_link.h"

namespace hearth::server {

struct Headers {
  json::Object facts;              // {model_type, size_bytes, quant_bits, vision, support_tier, embedding, fit}
  std::optional<Refusal> refusal;  // instead of them
  bool lasting = true;             // the same files say the same again; false: the process could not do its work
};

// Starts the command and waits for its word, at most so long. Not on a link's thread. Throws Error{cancelled} once
// `stop` is set.
Headers read_headers(const WorkerCommand& command, const std::filesystem::path& model,
                     std::chrono::milliseconds at_most, const std::atomic<bool>& stop);

// What a repetition may be spared by: path, sizes and times of the model's files. Opens none of them.
std::string files_state(const std::filesystem::path& model);

}  // namespace hearth::server
