// A plain HTTP/1.1 client for the commands that talk to a running server: one request, one connection, no TLS, no
// redirects. Blocks; any thread.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace hearth::net {

struct Endpoint {
  std::string host = "127.0.0.1";
  int port = 0;
  std::string unix_path{};  // if not empty, instead of host and port
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";
  std::vector<Header> headers{};  // Host, Content-Length and Connection are added
  std::string body{};
};

struct ClientLimits {
  Milliseconds connect{5'000};
  Milliseconds idle{300'000};  // between two pieces of the answer
  size_t head_bytes = 64 << 10;
  size_t body_bytes = 64 << 20;  // of an answer that is collected
};

struct ClientResponse {
  int status = 0;
  std::vector<Header> headers{};
  std::string body{};  // empty when on_data took it

  std::optional<std::string_view> header(std::string_view name) const;
};

// Pieces of the body as they come; false: enough, the connection is closed and the call returns.
using OnData = std::function<bool(std::string_view piece)>;

// Throws Error{not_found} when nobody listens there; Error{io} for a connection that fails or ends in the middle, or
// stays silent; Error{corrupt_file} for bytes that are no HTTP answer, or too many of them; Error{invalid_argument} for
// a request with characters that it may not have. Any status is an answer.
ClientResponse http_request(const Endpoint& endpoint, const ClientRequest& request, const OnData& on_data = {},
                            const ClientLimits& limits = {});

// "HTTP/1.1 200 OK" and headers, ended by an empty line, to status and headers. Error{corrupt_file}. Fuzzed.
ClientResponse parse_response_head(std::string_view bytes);

}  // namespace hearth::net
