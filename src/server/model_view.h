// A model of a server as others see it.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth::server {

enum class ModelState : uint8_t { absent, queued, loading, ready, waits_for_restart, failed };
std::string_view name_of(ModelState state);

// What a worker does: requests that its engine has begun, those that wait, and how fast answers came lately.
struct WorkerActivity {
  int64_t running = 0, waiting = 0;
  std::optional<double> tokens_per_second;
};

struct ModelView {
  std::string id, path, repo, revision;
  ModelState state = ModelState::absent;
  bool pinned = false, is_default = false;
  json::Object facts;  // empty until it has been loaded once
  int64_t open_requests = 0, restarts = 0;
  WorkerActivity activity;                             // waiting: those that wait for the load too
  std::optional<std::chrono::milliseconds> unload_in;  // if nobody asks; nullopt: it stays, or is not loaded
  std::string problem;                                 // of the last failure, as clients may read it
  pid_t pid = -1;
  int64_t modified_s = 0;  // of its files, seconds since 1970; 0: not looked at, or they are gone
};

}  // namespace hearth::server
