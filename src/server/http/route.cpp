#include "server/http/route.h"

#include <algorithm>

#include "base/json.h"

namespace hearth::server {
namespace {

// The parameter of `path` under the pattern; nullopt: another path.
std::optional<std::string> fit(std::string_view pattern, std::string_view path) {
  const size_t brace = pattern.find('{');
  if (brace == std::string_view::npos) return pattern == path ? std::optional<std::string>("") : std::nullopt;
  if (!path.starts_with(pattern.substr(0, brace)) || path.size() == brace) return std::nullopt;
  return std::string(path.substr(brace));
}

// A member costs many times its bytes once it is a Value, so a large body is counted before it becomes one.
constexpr size_t kMembersMax = 200'000, kCountedFrom = size_t{1} << 20;

class Members : public json::Visitor {
 public:
  void begin_object() override {}
  void end_object() override {}
  void begin_array() override {}
  void end_array() override {}
  void key(std::string_view) override {
    if (++count_ > kMembersMax)
      throw RequestError("", fmt::format("the body may have {} members of objects, it has more", kMembersMax));
  }
  void scalar(json::Value) override {}
  void string(std::string_view) override {}

 private:
  size_t count_ = 0;
};

}  // namespace

json::Object Call::body() const {
  json::Value value;
  try {
    if (request.body.size() >= kCountedFrom) {
      Members members;
      json::visit(request.body, "the body", members, {.depth = 96, .bytes_max = kGenerationBody});
    }
    value = json::parse(request.body, "the body", {.depth = 96, .bytes_max = kGenerationBody});
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError("", fmt::format("the body is not valid JSON: {}", error.what()));
  }
  if (!value.object()) throw RequestError("", "the body must be a JSON object");
  return std::move(*value.object());
}

std::string Call::query(std::string_view name) const {
  if (const auto pairs = net::query_parameters(request.head.query))
    for (const net::Header& pair : *pairs)
      if (pair.first == name) return pair.second;
  return "";
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
