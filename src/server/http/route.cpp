#include "server/http/route.h"

#include <algorithm>

#include "server/http/read_json.h"
#include "server/http/request_limits.h"

namespace hearth::server {
namespace {

// The parameter of `path` under the pattern; nullopt: another path.
std::optional<std::string> fit(std::string_view pattern, std::string_view path) {
  const size_t brace = pattern.find('{');
  if (brace == std::string_view::npos) return pattern == path ? std::optional<std::string>("") : std::nullopt;
  if (!path.starts_with(pattern.substr(0, brace)) || path.size() == brace) return std::nullopt;
  return std::string(path.substr(brace));
}

}  // namespace

json::Object Call::body() const {
  json::Object object = read_json_object(request.body, "the body", *limits);
  check_request_limits(object, route, *limits);
  return object;
}

std::string Call::query(std::string_view name) const {
  if (const auto pairs = net::query_parameters(request.head.query))
    for (const net::Header& pair : *pairs)
      if (pair.first == name) return pair.second;
  return "";
}

const LimitId* body_limit(const Route& route) {
  static constexpr LimitId kControl = LimitId::control_body, kGeneration = LimitId::body;
  switch (route.body) {
    case Body::none: return nullptr;
    case Body::control: return &kControl;
    case Body::generation: return &kGeneration;
  }
  return nullptr;
}

void Call::answer(int status, const json::Value& document) const { answer(json_response(status, document)); }

void Call::answer(net::Response response) const {
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  exchange->send(std::move(response));
}

void Call::refuse(const Problem& problem) const { answer(error_response(dialect, problem, request_id)); }

Match match(std::string_view method, std::string_view path) {
  Match found;
  for (const Route* route : routes()) {
    const std::optional<std::string> parameter = fit(route->path, path);
    if (!parameter) continue;
    if (route->method == method || (method == "HEAD" && route->method == "GET")) return {route, *parameter, ""};
    found.allow += (found.allow.empty() ? "" : ", ") + std::string(route->method);
  }
  return found;
}

}  // namespace hearth::server
