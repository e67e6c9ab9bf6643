#include "server/http/problem.h"

#include "server/client_sentence.h"
#include "server/error_at_hand.h"

namespace hearth::server {
namespace {

struct Row {
  ErrorKind kind;
  int status;
  std::string_view type, code;
  int retry_after_s;
};
constexpr Row kRows[] = {
    {ErrorKind::invalid_argument, 400, "invalid_request_error", "", 0},
    {ErrorKind::not_found, 404, "invalid_request_error", "model_not_found", 0},
    {ErrorKind::busy, 503, "server_error", "queue_full", 1},
    {ErrorKind::out_of_memory, 503, "server_error", "out_of_memory", 5},
    {ErrorKind::corrupt_file, 422, "invalid_request_error", "model_not_loadable", 0},
    {ErrorKind::io, 503, "server_error", "io", 1},
    {ErrorKind::device_lost, 503, "server_error", "worker_lost", 1},
    {ErrorKind::cancelled, 499, "server_error", "cancelled", 0},
};

Problem from(std::string_view kind, std::string message, std::string code, std::string param) {
  for (const Row& row : kRows)
    if (kind == name_of(row.kind))
      return {.status = row.status,
              .type = std::string(row.type),
              .message = std::move(message),
              .param = std::move(param),
              .code = code.empty() ? std::string(row.code) : std::move(code),
              .retry_after_s = row.retry_after_s,
              .more = {},
              .kind = std::string(kind)};
  return {.status = 500,
          .type = "server_error",
          .message = std::move(message),
          .param = std::move(param),
          .code = {},
          .retry_after_s = 0,
          .more = {},
          .kind = std::string(kind)};
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503:
    case 529: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

bool too_long(const Problem& problem) { return problem.code == "context_length_exceeded"; }

int64_t number_of(const Problem& problem, std::string_view key) {
  const json::Value* value = problem.more.find(key);
  return value ? value->as_int(key) : 0;
}

// A full queue is 529 there.
int status_of(Dialect dialect, const Problem& problem) {
  return dialect == Dialect::anthropic && problem.status == 503 && problem.code == "queue_full" ? 529 : problem.status;
}

}  // namespace

Problem problem_of(const Error& error) {
  const auto* field = dynamic_cast<const RequestError*>(&error);
  Problem problem = problem_of(refusal_of(error));
  if (field) problem.param = field->param();
  problem.limit = limit_of(error);
  return problem;
}

Problem problem_of(const Event& error) {
  const bool of_request = error.reason == name_of(ErrorKind::invalid_argument);
  Problem problem = from(error.reason, of_request ? error.text : client_sentence(error.text), error.code, error.param);
  problem.limit = error.limit;
  if (error.code == "context_length_exceeded") {
    problem.status = 400;
    problem.kind = name_of(ErrorKind::invalid_argument);
    problem.type = "memory_admission";
    problem.retry_after_s = 0;
    problem.more["detail_code"] = "context_over_budget";
    if (error.usage.prompt > 0) problem.more["n_prompt_tokens"] = error.usage.prompt;
    if (error.usage.max_tokens > 0) problem.more["n_ctx"] = error.usage.max_tokens;
  }
  return problem;
}

Problem problem_of(const Refusal& refusal) {
  Problem problem = from(name_of(refusal.kind), refusal.message, refusal.code, "");
  if (refusal.needed_bytes > 0) {
    problem.more["needed_bytes"] = refusal.needed_bytes;
    problem.more["usable_bytes"] = refusal.usable_bytes;
  }
  return problem;
}

Problem problem_at_hand() {
  return with_error_at_hand([](const Error& error) { return problem_of(error); });
}

json::Value error_json(Dialect dialect, const Problem& problem, std::string_view request_id) {
  json::Object error, body;
  if (dialect == Dialect::anthropic) {
    error["type"] = anthropic_type(status_of(dialect, problem));
    const int64_t tokens = number_of(problem, "n_prompt_tokens");
    if (!too_long(problem)) error["message"] = problem.message;
    else if (tokens == 0) error["message"] = "prompt is too long: " + problem.message;  // too much text to be counted
    else
      error["message"] = fmt::format("prompt is too long: {} tokens > {} maximum", tokens, number_of(problem, "n_ctx"));
    body["type"] = "error";
    body["error"] = std::move(error);
    body["request_id"] = request_id;
    return body;
  }
  error["message"] = problem.message;
  error["type"] = problem.type;
  error["param"] = problem.param.empty() ? json::Value() : json::Value(problem.param);
  error["code"] = problem.code.empty() ? json::Value() : json::Value(problem.code);
  for (const auto& [key, value] : problem.more) error[key] = value;
  body["error"] = std::move(error);
  return body;
}

net::Response json_response(int status, const json::Value& body) {
  return {.status = status, .headers = {}, .body = json::dump(body), .content_type = "application/json"};
}

net::Response error_response(Dialect dialect, const Problem& problem, std::string_view request_id) {
  net::Response response = json_response(status_of(dialect, problem), error_json(dialect, problem, request_id));
  if (problem.retry_after_s > 0) response.headers.emplace_back("Retry-After", std::to_string(problem.retry_after_s));
  if (problem.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace hearth::server
