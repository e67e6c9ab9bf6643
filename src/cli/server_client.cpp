#include "cli/server_client.h"

#include "base/error.h"

namespace hearth::cli {
namespace {

// "http://127.0.0.1:8080", "http://[::1]:8080", "unix:/path".
net::Endpoint endpoint_of(const std::string& url) {
  net::Endpoint endpoint;
  if (url.starts_with("unix:")) {
    endpoint.unix_path = url.substr(5);
    return endpoint;
  }
  const size_t begin = url.find("://") + 3, colon = url.rfind(':');
  HEARTH_CHECK(begin >= 3 && colon != std::string::npos && colon > begin, "a server at {}", url);
  endpoint.host = url.substr(begin, colon - begin);
  if (endpoint.host.starts_with('[')) endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  endpoint.port = std::stoi(url.substr(colon + 1));
  return endpoint;
}

ErrorKind kind_of(int status) {
  if (status == 404) return ErrorKind::not_found;
  if (status == 503) return ErrorKind::busy;
  return status < 500 ? ErrorKind::invalid_argument : ErrorKind::io;
}

}  // namespace

server::InstanceInfo running_server(const Context& context) {
  const auto found = server::find_instance(hub::runtime_folder(context.env()));
  if (!found) fail(ErrorKind::not_found, "no server runs here; hearth serve MODEL starts one");
  return *found;
}

net::ClientResponse call_server(const server::InstanceInfo& instance, const std::string& method,
                                const std::string& path, const std::string& credential,
                                const std::optional<json::Object>& body, const net::ClientLimits& limits) {
  net::ClientRequest request;
  request.method = method;
  request.target = path;
  if (!credential.empty()) request.headers = {{"Authorization", "Bearer " + credential}};
  if (body) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = json::dump(*body);
  }
  return net::http_request(endpoint_of(instance.url), request, {}, limits);
}

std::string path_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/@:").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

json::Value ask_server(const Context& context, const std::string& method, const std::string& path,
                       const std::optional<json::Object>& body) {
  const server::InstanceInfo instance = running_server(context);
  const net::ClientResponse response = call_server(instance, method, path, instance.token, body);
  json::Value document = json::parse(response.body, "the server's answer");
  if (response.status < 300) return document;
  const json::Value* error = document.get("error");
  const json::Value* message = error ? error->get("message") : nullptr;
  fail(kind_of(response.status), "{}", message && message->string() ? *message->string() : response.body);
}

}  // namespace hearth::cli
