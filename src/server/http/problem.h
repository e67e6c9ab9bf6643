// What is wrong with a request, and how each dialect says it (spec server 4).
#pragma once
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "net/http.h"
#include "server/generation.h"
#include "server/refusal.h"
#include "server/request_error.h"

namespace hearth::server {

enum class Dialect : uint8_t { openai, anthropic };

struct Problem {
  int status = 500;
  std::string type, message, param, code;
  int retry_after_s = 0;  // 0: no Retry-After
  json::Object more;      // further members of the error object
  std::string kind{};     // name of its ErrorKind; "": the request is wrong
  std::string limit{};    // name of the one that was passed (server/limits.h), for the metrics
};

// Error kinds to status: invalid_argument 400, not_found 404, busy 503, out_of_memory 503, corrupt_file 422, io and
// device_lost 503, cancelled 499. What was not written for clients (ClientError, an event for which the request is at
// fault) is told as client_sentence() has it.
Problem problem_of(const Error& error);
Problem problem_of(const Event& error);
Problem problem_of(const Refusal& refusal);
// Of the exception that is handled where this is called, as with_error_at_hand() has it.
Problem problem_at_hand();

// The error object of a body or of an event in a stream: OpenAI {error: {message, type, param, code}}, Anthropic {type:
// "error", error: {type, message}, request_id}.
json::Value error_json(Dialect dialect, const Problem& problem, std::string_view request_id);
net::Response error_response(Dialect dialect, const Problem& problem, std::string_view request_id);

net::Response json_response(int status, const json::Value& body);

}  // namespace hearth::server
