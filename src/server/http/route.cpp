#include "server/http/route.h"

#include <algorithm>

#include "base/json.h"
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

// A member costs many times its bytes once it is a Value, so a large body is counted before it becomes one.
constexpr size_t kMemberBytes = 5;  // "":0, at least

class Members : public json::Visitor {
 public:
  explicit Members(size_t most) : most_(most) {}
  void begin_object() override {}
  void end_object() override {}
  void begin_array() override {}
  void end_array() override {}
  void key(std::string_view) override {
    if (++count_ > most_)
      throw RequestError("", fmt::format("the body may have {} members of objects, it has more", most_),
                         std::string(row_of(LimitId::json_members).name));
  }
  void scalar(json::Value) override {}
  void string(std::string_view) override {}

 private:
  const size_t most_;
  size_t count_ = 0;
};

}  // namespace

json::Object Call::body() const {
  json::Value value;
  const size_t members_max = limits->size_of(LimitId::json_members);
  const json::ParseLimits parsing{.depth = static_cast<int>((*limits)[LimitId::json_depth]),
                                  .bytes_max = request.body.size()};
  try {
    if (request.body.size() / kMemberBytes > members_max) {
      Members members(members_max);
      json::visit(request.body, "the body", members, parsing);
    }
    value = json::parse(request.body, "the body", parsing);
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError("", fmt::format("the body is not valid JSON: {}", error.what()), limit_of(error));
  }
  if (!value.object()) throw RequestError("", "the body must be a JSON object");
  check_request_limits(*value.object(), route, *limits);
  return std::move(*value.object());
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
