// The server that runs on this machine, as the commands beside it see it.
#pragma once
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/context.h"
#include "net/http_client.h"
#include "server/front/instance.h"

namespace hearth::cli {

// Throws Error{not_found} when no server runs.
server::InstanceInfo running_server(const Context& context);

// One request with that credential ("": none); any status is an answer. Throws as net::http_request.
net::ClientResponse call_server(const server::InstanceInfo& instance, const std::string& method,
                                const std::string& path, const std::string& credential,
                                const std::optional<json::Object>& body, const net::ClientLimits& limits = {});

// Percent-encoded where it may not stand in a path as it is; slashes stay.
std::string path_escaped(std::string_view text);

// One request with the session token. Throws Error with the server's own words for a status beyond 299.
json::Value ask_server(const Context& context, const std::string& method, const std::string& path,
                       const std::optional<json::Object>& body);

}  // namespace hearth::cli
