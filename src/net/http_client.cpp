#include "net/http_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "net/chunked_decoder.h"
#include "net/grammar.h"
#include "net/listen.h"
#include "net/request_head.h"

namespace hearth::net {

namespace {

constexpr size_t kHeadersMax = 200;

std::string name_of(const Endpoint& endpoint) {
  return endpoint.unix_path.empty() ? fmt::format("{}:{}", endpoint.host, endpoint.port) : endpoint.unix_path;
}

std::string format_request(const Endpoint& endpoint, const ClientRequest& request) {
  if (!is_token(request.method)) fail(ErrorKind::invalid_argument, "a request's method is no token");
  if (!request.target.starts_with('/') ||
      !std::all_of(request.target.begin(), request.target.end(), [](char c) { return c > 0x20 && c < 0x7F; }))
    fail(ErrorKind::invalid_argument, "a request's target is no path, or has characters to be escaped");
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", request.method, request.target,
                                endpoint.unix_path.empty() ? name_of(endpoint) : "localhost");
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || !std::all_of(value.begin(), value.end(), is_value_char))
      fail(ErrorKind::invalid_argument, "a request's header has characters that it may not have");
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    out += fmt::format("Content-Length: {}\r\n", request.body.size());
  return out.append("\r\n").append(request.body);
}

// A connected socket with time limits.
class Wire {
 public:
  Wire(const Endpoint& endpoint, const ClientLimits& limits)
      : name_(name_of(endpoint)),
        limits_(limits),
        socket_(endpoint.unix_path.empty() ? connect_tcp(endpoint.host, endpoint.port, limits.connect)
                                           : connect_unix(endpoint.unix_path)) {}

  // A server that answers before it has read all, to refuse, is heard: a failure to send is none yet.
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      wait(POLLOUT);
      const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno == EPIPE || errno == ECONNRESET) {
        return;
      } else if (errno != EINTR && errno != EAGAIN) {
        fail(ErrorKind::io, "{}: send: {}", name_, std::strerror(errno));
      }
    }
  }

  // What comes next, appended; false: the end.
  bool receive(std::string& out) {
    char piece[16 << 10];
    for (;;) {
      wait(POLLIN);
      const ssize_t n = ::recv(socket_.get(), piece, sizeof piece, 0);
      if (n > 0) out.append(piece, static_cast<size_t>(n));
      if (n >= 0) return n > 0;
      if (errno != EINTR) fail(ErrorKind::io, "{}: the connection broke: {}", name_, std::strerror(errno));
    }
  }

  const std::string& name() const { return name_; }

 private:
  void wait(short event) {
    pollfd look{socket_.get(), event, 0};
    const auto until = std::chrono::steady_clock::now() + limits_.idle;
    for (;;) {
      const auto left = std::chrono::ceil<Milliseconds>(until - std::chrono::steady_clock::now()).count();
      const int ready = ::poll(&look, 1, static_cast<int>(std::max<int64_t>(left, 0)));
      if (ready > 0) return;
      if (ready == 0) fail(ErrorKind::io, "{}: silent for {} ms", name_, limits_.idle.count());
      if (errno != EINTR) fail(ErrorKind::io, "{}: poll: {}", name_, std::strerror(errno));
    }
  }

  const std::string name_;
  const ClientLimits& limits_;
  Descriptor socket_;
};

std::optional<uint64_t> length_of(const ClientResponse& response, const std::string& from) {
  const auto text = response.header("content-length");
  if (!text) return std::nullopt;
  if (text->empty() || text->size() > 18 || !std::all_of(text->begin(), text->end(), is_digit))
    fail(ErrorKind::corrupt_file, "{}: the answer's Content-Length is no number", from);
  return std::stoull(std::string(*text));
}

// The head of the final answer; what was read past it stays in `in`.
ClientResponse read_head(Wire& wire, std::string& in, size_t bytes_max) {
  for (;;) {
    const size_t end = in.find("\r\n\r\n");
    if (end == in.npos) {
      if (in.size() > bytes_max)
        fail(ErrorKind::corrupt_file, "{}: the answer's headers have more than {} bytes", wire.name(), bytes_max);
      if (!wire.receive(in)) fail(ErrorKind::io, "{}: the connection ended without an answer", wire.name());
      continue;
    }
    ClientResponse head = parse_response_head(std::string_view(in).substr(0, end + 4));
    in.erase(0, end + 4);
    if (head.status >= 200) return head;  // else 100 Continue and the like
  }
}

}  // namespace

std::optional<std::string_view> ClientResponse::header(std::string_view name) const {
  for (const Header& header : headers)
    if (same_token(header.first, name)) return header.second;
  return std::nullopt;
}

ClientResponse parse_response_head(std::string_view bytes) {
  const auto take_line = [&bytes] {
    const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 2));
    return line;
  };
  const std::string_view first = take_line();
  if (!(first.starts_with("HTTP/1.1 ") || first.starts_with("HTTP/1.0 ")) || first.size() < 12 ||
      !std::all_of(first.begin() + 9, first.begin() + 12, is_digit) || (first.size() > 12 && first[12] != ' '))
    fail(ErrorKind::corrupt_file, "the answer is no HTTP/1.1: its first line is not HTTP/1.1 STATUS REASON");
  ClientResponse out;
  out.status = 100 * (first[9] - '0') + 10 * (first[10] - '0') + (first[11] - '0');
  if (out.status < 100) fail(ErrorKind::corrupt_file, "the answer's status is {}", out.status);
  for (std::string_view line = take_line(); !line.empty(); line = take_line()) {
    auto header = parse_header_line(line);
    if (!header || out.headers.size() == kHeadersMax)
      fail(ErrorKind::corrupt_file, "a header of the answer is not NAME: VALUE, or there are more than {}",
           kHeadersMax);
    out.headers.push_back(std::move(*header));
  }
  return out;
}

ClientResponse http_request(const Endpoint& endpoint, const ClientRequest& request, const OnData& on_data,
                            const ClientLimits& limits) {
  const std::string bytes = format_request(endpoint, request);
  Wire wire(endpoint, limits);
  wire.send(bytes);
  std::string in;
  ClientResponse out = read_head(wire, in, limits.head_bytes);
  if (request.method == "HEAD" || out.status == 204 || out.status == 304) return out;

  const auto coding = out.header("transfer-encoding");
  const bool chunked = coding && same_token(*coding, "chunked");
  if (coding && !chunked) fail(ErrorKind::corrupt_file, "{}: the answer's Transfer-Encoding is unknown", wire.name());
  const auto length = chunked ? std::nullopt : length_of(out, wire.name());
  ChunkedDecoder chunks;
  uint64_t left = length.value_or(UINT64_MAX);
  for (bool more = left > 0; more;) {
    std::string piece;
    std::string_view rest = in;
    if (chunked) {
      switch (chunks.feed(rest, piece, limits.body_bytes)) {
        case ChunkedDecoder::Result::need_more: break;
        case ChunkedDecoder::Result::done: more = false; break;
        case ChunkedDecoder::Result::malformed:
        case ChunkedDecoder::Result::too_large:
          fail(ErrorKind::corrupt_file, "{}: the answer is not in valid chunks", wire.name());
      }
    } else {
      piece = rest.substr(0, static_cast<size_t>(std::min<uint64_t>(left, rest.size())));
      left -= piece.size();
      more = left > 0;
    }
    in.clear();
    if (!piece.empty() && on_data && !on_data(piece)) return out;
    if (!on_data) {
      if (piece.size() > limits.body_bytes - out.body.size())
        fail(ErrorKind::corrupt_file, "{}: the answer has more than {} bytes", wire.name(), limits.body_bytes);
      out.body += piece;
    }
    if (more && !wire.receive(in)) {
      if (chunked || length) fail(ErrorKind::io, "{}: the answer ended in the middle", wire.name());
      return out;
    }
  }
  return out;
}

}  // namespace hearth::net
