// The adapters in the server's folder, and whether each was trained on a model: their configs are strangers' files, so
// a process of the header readers' kind looks at them, one after the other.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "hub/store.h"
#include "server/front/model_headers.h"
#include "server/refusal.h"

namespace hearth::server {

struct AvailableAdapter {
  std::string name;     // of its folder
  json::Object facts;   // base, revision, compatible, mismatch
  std::string problem;  // why there are none; may be told to clients
};

// In the folders' order; or why the model's headers cannot be read. start() makes a process, which is done only where
// there is an adapter, and again for each that ends over a config. All together at most so long: what was not read by
// then says so. Not on a link's thread. Throws as HeaderReader.
std::variant<std::vector<AvailableAdapter>, Refusal> available_adapters(
    const std::filesystem::path& folder, const hub::FoundModel& model,
    const std::function<std::unique_ptr<HeaderReader>()>& start, std::chrono::milliseconds at_most);

}  // namespace hearth::server
