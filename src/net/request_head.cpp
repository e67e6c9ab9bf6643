#include "net/request_head.h"

#include <algorithm>

#include "net/grammar.h"

namespace hearth::net {

namespace {

constexpr size_t kBlankLinesMax = 2;
constexpr size_t kMethodBytesMax = 32;

Refusal bad(std::string sentence) { return {400, std::move(sentence), {}}; }

std::string_view take_line(std::string_view& bytes) {
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  bytes.remove_prefix(std::min(bytes.size(), line.size() + 2));
  return line;
}

// host or host:port, as in a Host header: letters, digits, -._~%!$&'()*+,;= and [..] for IPv6; may be empty.
bool is_authority(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("-._~%!$&'()*+,;=[]:").find(c) != std::string_view::npos;
  });
}

// The target to path and query; the authority of an absolute one. Absent refusal: it is well-formed.
std::optional<Refusal> parse_target(RequestHead& head, std::string& authority) {
  std::string_view rest = head.target;
  for (const char c : rest)
    if (!(c > 0x20 && c < 0x7F) || c == '#') return bad("the request target holds a character that a target may not");
  if (rest == "*") {
    if (head.method != "OPTIONS") return bad("the target * is for OPTIONS alone");
    head.path = "*";
    return std::nullopt;
  }
  if (!rest.starts_with('/')) {
    const size_t scheme = rest.find("://");
    if (scheme == rest.npos ||
        !(same_token(rest.substr(0, scheme), "http") || same_token(rest.substr(0, scheme), "https")))
      return bad("the request target is neither a path nor an http address");
    rest.remove_prefix(scheme + 3);
    authority = rest.substr(0, rest.find_first_of("/?"));
    rest.remove_prefix(authority.size());
    if (authority.empty() || !is_authority(authority)) return bad("the request target names no valid host");
  }
  const size_t question = rest.find('?');
  std::string_view path = rest.substr(0, question);
  if (question != rest.npos) head.query = rest.substr(question + 1);
  if (path.empty()) path = "/";
  auto decoded = percent_decode(path);
  if (!decoded) return bad("the request path holds a bad percent escape or a zero byte");
  head.path = std::move(*decoded);
  return std::nullopt;
}

std::optional<Refusal> parse_request_line(std::string_view line, ParsedHead& out, std::string& authority) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == line.npos || first == last) return bad("the request line is not METHOD TARGET HTTP/1.1");
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  if (!is_token(method) || method.size() > kMethodBytesMax) return bad("the request's method is not a token");
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' ||
      !is_digit(version[7]))
    return bad("the request line does not end with HTTP/1.1");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return Refusal{505, "this server speaks HTTP/1.1 and HTTP/1.0", {}};
  if (method == "CONNECT") return Refusal{501, "this server is no proxy: CONNECT is not supported", {}};
  out.minor = version.back() - '0';
  out.head.method = method;
  out.head.target = line.substr(first + 1, last - first - 1);
  return parse_target(out.head, authority);
}

std::optional<Refusal> parse_host(const ParsedHead& parsed, std::string_view authority) {
  const RequestHead& head = parsed.head;
  const size_t count = head.header_count("host");
  if (count > 1) return bad("the request has more than one Host header");
  if (count == 0 && parsed.minor == 1) return bad("the request has no Host header");
  const std::string_view host = head.header("host").value_or("");
  if (!is_authority(host)) return bad("the Host header is not host or host:port");
  // Whoever checks the Host header has checked the target too.
  if (!authority.empty() && !same_token(authority, host)) return bad("the request target and the Host header differ");
  return std::nullopt;
}

std::optional<Refusal> parse_framing(ParsedHead& parsed) {
  const RequestHead& head = parsed.head;
  const size_t lengths = head.header_count("content-length"), codings = head.header_count("transfer-encoding");
  if (lengths > 0 && codings > 0) return bad("the request has both Content-Length and Transfer-Encoding");
  if (lengths > 1) return bad("the request has more than one Content-Length header");
  if (codings > 1) return bad("the request has more than one Transfer-Encoding header");
  if (codings == 1) {
    if (parsed.minor == 0) return bad("an HTTP/1.0 request cannot have a Transfer-Encoding");
    if (!same_token(*head.header("transfer-encoding"), "chunked"))
      return Refusal{501, "the only Transfer-Encoding understood is chunked", {}};
    parsed.chunked = true;
  }
  if (lengths == 1) {
    const std::string_view text = *head.header("content-length");
    if (text.empty() || text.size() > 18 || !std::all_of(text.begin(), text.end(), is_digit))
      return bad("the Content-Length is not a number of at most 18 digits");
    uint64_t length = 0;
    for (const char c : text) length = 10 * length + static_cast<uint64_t>(c - '0');
    parsed.content_length = length;
  }
  return std::nullopt;
}

}  // namespace

std::variant<std::optional<size_t>, Refusal> HeadScanner::scan(std::string_view bytes) {
  while (looked_at_ < bytes.size()) {
    const size_t end = bytes.find_first_of(std::string_view("\r\n\0", 3), looked_at_);
    looked_at_ = std::min(end, bytes.size());
    const size_t line_bytes = looked_at_ - line_begin_;
    if (lines_ == 0 && line_bytes > limits_.request_line_bytes)
      return Refusal{414, "the request line has more than " + std::to_string(limits_.request_line_bytes) + " bytes",
                     HttpLimit::request_line};
    if (looked_at_ + (end < bytes.size() ? 2 : 0) > limits_.head_bytes)
      return Refusal{431, "the request's headers have more than " + std::to_string(limits_.head_bytes) + " bytes",
                     HttpLimit::head};
    if (end >= bytes.size()) return std::nullopt;
    if (bytes[end] == '\0') return bad("the request's headers hold a zero byte");
    if (bytes[end] == '\n') return bad("a line of the request's headers ends with LF alone");
    if (end + 1 == bytes.size()) return std::nullopt;  // CR, and LF is still to come
    if (bytes[end + 1] != '\n') return bad("a line of the request's headers holds CR without LF");
    looked_at_ = line_begin_ = end + 2;
    if (line_bytes > 0) {
      if (++lines_ > limits_.headers_max + 1)
        return Refusal{431, "the request has more than " + std::to_string(limits_.headers_max) + " headers",
                       HttpLimit::headers};
    } else if (lines_ > 0) {
      return std::optional(looked_at_);
    } else if (++blanks_ > kBlankLinesMax) {
      return bad("the request begins with empty lines");
    }
  }
  return std::nullopt;
}

std::string path_said(std::string_view bytes) {
  bytes.remove_prefix(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
  const std::string_view line = bytes.substr(0, bytes.find_first_of(std::string_view("\r\n\0", 3)));
  const size_t space = line.find(' ');
  if (space == line.npos) return "";
  std::string_view target = line.substr(space + 1);
  target = target.substr(0, target.find_first_of(" ?#"));
  if (const size_t scheme = target.find("://"); scheme != target.npos && !target.starts_with('/')) {
    target.remove_prefix(scheme + 3);
    target.remove_prefix(std::min(target.find('/'), target.size()));
  }
  return target.starts_with('/') ? percent_decode(target).value_or(std::string(target)) : "";
}

std::optional<Header> parse_header_line(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) return std::nullopt;
  const std::string_view value = trim(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_value_char)) return std::nullopt;
  return Header(line.substr(0, colon), value);
}

std::variant<ParsedHead, Refusal> parse_head(std::string_view bytes, const HttpLimits& limits) {
  ParsedHead out;
  while (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
  std::string authority;
  if (auto refusal = parse_request_line(take_line(bytes), out, authority)) return std::move(*refusal);
  for (std::string_view line = take_line(bytes); !line.empty(); line = take_line(bytes)) {
    if (line.front() == ' ' || line.front() == '\t') return bad("a header is folded over several lines");
    if (out.head.headers.size() == limits.headers_max)
      return Refusal{431, "the request has too many headers", HttpLimit::headers};
    auto header = parse_header_line(line);
    if (!header) return bad("a header of the request is not NAME: VALUE");
    out.head.headers.push_back(std::move(*header));
  }
  if (auto refusal = parse_host(out, authority)) return std::move(*refusal);
  if (auto refusal = parse_framing(out)) return std::move(*refusal);

  out.keep_alive = out.minor == 1;
  for (const auto& [name, value] : out.head.headers)
    if (same_token(name, "connection") && lists_token(value, "close")) out.keep_alive = false;
  if (const auto expect = out.head.header("expect"); expect && out.minor == 1) {
    if (!same_token(*expect, "100-continue"))
      return Refusal{417, "the only expectation understood is 100-continue", {}};
    out.expects_continue = true;
  }
  return out;
}

}  // namespace hearth::net
