// A model of a server as others see it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth::server {

enum class ModelState : uint8_t { absent, queued, loading, ready, waits_for_restart, failed };
std::string_view name_of(ModelState state);

struct ModelView {
  std::string id, path, repo, revision;
  ModelState state = ModelState::absent;
  bool pinned = false, is_default = false;
  json::Object facts;  // empty until it has been loaded once
  int64_t open_requests = 0, restarts = 0;
  std::string problem;  // of the last failure, as clients may read it
  pid_t pid = -1;
  int64_t modified_s = 0;  // of its files, seconds since 1970; 0: not looked at, or they are gone
};

}  // namespace hearth::server
