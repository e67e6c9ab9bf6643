// The bytes of a request's head to a RequestHead (RFC 9112), strictly: lines end with CRLF, nothing is folded, there is
// one way to tell where the body ends. Pure functions of bytes; fuzzed (tests/fuzz/net/http_head.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/http.h"

namespace hearth::net {

// An answer of the server's own: the status and why, for a person; bytes of the request are not repeated.
struct Refusal {
  int status;
  std::string sentence;
  std::optional<HttpLimit> limit{};  // that was passed
};

// Watches a head arrive, so that one over a limit is refused before it is complete. Bytes are looked at once.
class HeadScanner {
 public:
  explicit HeadScanner(const HttpLimits& limits) : limits_(limits) {}

  // `bytes` is what arrived since the begin of the request: the same as at the last call, and more. The size of the
  // head with its empty line; absent: more is needed. Empty lines before the request are part of the head (at most 2).
  std::variant<std::optional<size_t>, Refusal> scan(std::string_view bytes);

 private:
  const HttpLimits& limits_;
  size_t looked_at_ = 0, line_begin_ = 0, lines_ = 0, blanks_ = 0;
};

struct ParsedHead {
  RequestHead head;
  int minor = 1;  // HTTP/1.minor: 0 or 1
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// `bytes` is a whole head as HeadScanner found it. peer and over_unix_socket are left for the caller.
std::variant<ParsedHead, Refusal> parse_head(std::string_view bytes, const HttpLimits& limits);

// The path that the first line of these bytes names, which may be no request: empty where none can be made out.
std::string path_said(std::string_view bytes);

// "name: value" without its CRLF; absent if it is none.
std::optional<Header> parse_header_line(std::string_view line);

}  // namespace hearth::net
