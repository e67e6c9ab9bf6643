// The server that runs on this machine, as the commands beside it see it.
#pragma once
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/context.h"
#include "server/front/instance.h"

namespace hearth::cli {

// Throws Error{not_found} when no server runs.
server::InstanceInfo running_server(const Context& context);

// One request with the session token. Throws Error with the server's own words for a status beyond 299.
json::Value ask_server(const Context& context, const std::string& method, const std::string& path,
                       const std::optional<json::Object>& body);

}  // namespace hearth::cli
