// JSON that strangers send: bodies, frames.
#pragma once
#include <string_view>

#include "base/json.h"
#include "server/limits.h"

namespace hearth::server {

// A JSON object within the limits of depth, members and items, which are counted before any of it becomes a Value.
// `what` begins the sentences: "the body". Throws RequestError, naming the limit where one is passed. Any thread.
json::Object read_json_object(std::string_view text, std::string_view what, const Limits& limits);

}  // namespace hearth::server
