// One line of `hearth doctor`.
#pragma once
#include <cstdint>
#include <string>

#include "base/json.h"

namespace hearth::cli {

enum class Health : uint8_t { ok, warn, fail };

struct Finding {
  std::string what;
  Health health = Health::ok;
  std::string text;
  std::string fix = {};       // the next thing to do; empty when all is well
  json::Object details = {};  // further members of its JSON row
};

}  // namespace hearth::cli
