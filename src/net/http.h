// What an HTTP exchange is made of: limits, a request, an answer. Values only; no socket is known here.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hearth::net {

using Milliseconds = std::chrono::milliseconds;
using Header = std::pair<std::string, std::string>;

// reliability.md section 3. A request over a limit is answered with the status named, then the connection ends.
struct HttpLimits {
  size_t request_line_bytes = 8 << 10;  // without its CRLF: 414
  size_t head_bytes = 16 << 10;         // request line and headers, with every CRLF: 431
  size_t headers_max = 100;             // 431
  Milliseconds head_time{10'000};  // from a request's first byte, or the connection's begin, to the head's end: 408
  Milliseconds body_idle{30'000};  // between two pieces of a body: 408
  Milliseconds keep_alive_idle{75'000};  // between two requests; then the connection ends without a word
  size_t connections_max = 1024;  // the one that is longest without a whole head makes room; if there is none, 503

  size_t stream_bytes = 256 << 10;        // of one stream, not yet taken by the system: more, and its owner pauses
  size_t stream_bytes_max = 16 << 20;     // for owners that do not pause: the connection ends
  Milliseconds slow_reader{60'000};       // a client that takes nothing, or stays above stream_bytes, for this long
  Milliseconds coalesce{1};               // at least this much between two writes of a stream
  Milliseconds linger{2'000};             // after a refusal, what still comes is read and dropped for this long
  size_t socket_send_bytes = 256 << 10;   // the system's buffer per connection; 0: its choice
  size_t pipelined_bytes_max = 64 << 10;  // of later requests, read while one is answered
};

// Those that a client can run into, as Handlers::on_limit is told. body: BodyPlan::bytes_max.
enum class HttpLimit : uint8_t { request_line, head, headers, head_time, body, body_idle, connections, slow_reader };

// A request without its body. All parts have passed the grammar: names are tokens, values hold no control character but
// tab, one Host for HTTP/1.1.
struct RequestHead {
  std::string method;  // as sent: GET is not get
  std::string target;  // as sent
  std::string path;    // percent-decoded, begins with '/', no NUL; "*" for OPTIONS *
  std::string query;   // after '?', not decoded
  std::vector<Header> headers;
  std::string peer;  // the client's address, without port; "unix" over a Unix socket
  bool over_unix_socket = false;

  // The value of the first header of that name, in any case.
  std::optional<std::string_view> header(std::string_view name) const;
  size_t header_count(std::string_view name) const;
  // It asks for Upgrade: websocket; answer with accept_websocket() or an ordinary response.
  bool wants_websocket() const;
};

struct Request {
  RequestHead head;
  std::string body;  // de-chunked
};

// Content-Length, Transfer-Encoding, Connection and Date are the server's; naming them is Error{invalid_argument}.
struct Response {
  int status = 200;  // 200..599
  std::vector<Header> headers{};
  std::string body{};
  std::string content_type{};  // empty: no Content-Type
  Milliseconds delay{0};       // of on_head: the answer is held back for so long
};

// What on_head decided: the body may have this many bytes, else 413.
struct BodyPlan {
  size_t bytes_max = 0;
};

class Exchange;

// Called on the I/O threads: none may block. What they throw is logged and answered with 500.
struct Handlers {
  // A Response refuses the request before its body is read.
  std::function<std::variant<Response, BodyPlan>(const RequestHead&)> on_head{};
  std::function<void(Request, std::shared_ptr<Exchange>)> on_request{};
  // The body of answers that the server gives by itself (400, 408, 413, 414, 417, 431, 500, 501, 503, 505). Empty: the
  // sentence as text/plain. path: of the request, as far as one can be made out in bytes that may be none; else empty.
  std::function<Response(int status, std::string_view sentence, std::string_view path)> error_body{};
  // A client was refused or cut for passing one of HttpLimits. `head`: of the request at hand, where it is known: of
  // body it always is. May be empty.
  std::function<void(HttpLimit limit, const RequestHead& head)> on_limit{};
};

// ASCII letters without case.
bool same_token(std::string_view a, std::string_view b);
// Whether a comma-separated list names the token.
bool lists_token(std::string_view list, std::string_view token);

// %41 to A. Absent for a bad escape or a NUL. With plus_is_space as in forms.
enum class Plus { literal, space };
std::optional<std::string> percent_decode(std::string_view text, Plus plus = Plus::literal);

// a=1&b=2, decoded as forms are; absent if an escape is bad. At most pairs_max pairs, else absent too.
std::optional<std::vector<Header>> query_parameters(std::string_view query, size_t pairs_max = 100);

}  // namespace hearth::net
