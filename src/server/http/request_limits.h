// The limits of request fields (server/limits.h), the same in every dialect: checked before the dialect reads the body.
#pragma once
#include <string_view>

#include "base/json.h"
#include "server/generation.h"
#include "server/limits.h"

namespace hearth::server {

// Throws RequestError naming the field, the bound and the limit. What has another type is the dialect's to refuse.
// `route`: the path in the table, as some fields mean other things elsewhere.
void check_request_limits(const json::Object& body, std::string_view route, const Limits& limits);

// The same of what a dialect has made of the body: functions that stood in namespaces or in messages, messages of the
// responses before this one, results of calls that came in one message. `messages`: the field that refusals name.
void check_expanded_limits(const Generation& generation, std::string_view messages, const Limits& limits);

// The bounds that hold, put into the JSON Schema of that route's body.
void put_request_limits(json::Object& schema, std::string_view route, const Limits& limits);

}  // namespace hearth::server
