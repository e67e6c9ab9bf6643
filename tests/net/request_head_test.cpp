#include "net/request_head.h"

#include <gtest/gtest.h>

namespace hearth::net {
namespace {

using std::get_if;

std::variant<ParsedHead, Refusal> parse(const std::string& bytes, const HttpLimits& limits = {}) {
  HeadScanner scanner(limits);
  auto scanned = scanner.scan(bytes);
  if (auto* refusal = get_if<Refusal>(&scanned)) return std::move(*refusal);
  const auto size = std::get<std::optional<size_t>>(scanned);
  if (!size) return Refusal{0, "incomplete"};
  return parse_head(std::string_view(bytes).substr(0, *size), limits);
}

ParsedHead good(const std::string& bytes) {
  auto parsed = parse(bytes);
  if (auto* refusal = get_if<Refusal>(&parsed)) {
    ADD_FAILURE() << bytes << ": " << refusal->status << " " << refusal->sentence;
    return {};
  }
  return std::get<ParsedHead>(std::move(parsed));
}

int status(const std::string& bytes, const HttpLimits& limits = {}) {
  auto parsed = parse(bytes, limits);
  auto* refusal = get_if<Refusal>(&parsed);
  return refusal ? refusal->status : 200;
}

std::string with(const std::string& headers) { return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n"; }

TEST(RequestHead, parts) {
  const ParsedHead p =
      good("PUT /a%20b/%C3%A9?x=1&y=%20 HTTP/1.1\r\nHost: localhost:8080\r\nX-Key:  v a l \t\r\nx-key: 2\r\n\r\n");
  EXPECT_EQ(p.head.method, "PUT");
  EXPECT_EQ(p.head.target, "/a%20b/%C3%A9?x=1&y=%20");
  EXPECT_EQ(p.head.path, "/a b/é");
  EXPECT_EQ(p.head.query, "x=1&y=%20");
  EXPECT_EQ(p.head.header("X-KEY"), "v a l");
  EXPECT_EQ(p.head.header_count("X-key"), 2u);
  EXPECT_EQ(p.head.header("none"), std::nullopt);
  EXPECT_TRUE(p.keep_alive);
  EXPECT_FALSE(p.has_body());
}

TEST(RequestHead, versions_and_connection) {
  EXPECT_FALSE(good("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_FALSE(good(with("Connection: foo, Close\r\n")).keep_alive);
  EXPECT_TRUE(good(with("Connection: keep-alive\r\n")).keep_alive);
  EXPECT_EQ(status("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
  EXPECT_EQ(status("GET / HTTP/1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / http/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestHead, request_lines_that_are_none) {
  for (const char* line :
       {"GET /", "GET  / HTTP/1.1", " GET / HTTP/1.1", "GET / HTTP/1.1 ", "GET /a b HTTP/1.1", "G@T / HTTP/1.1",
        "GET\t/ HTTP/1.1", "GET a HTTP/1.1", "GET /a#b HTTP/1.1", "GET ftp://a/ HTTP/1.1", "GET * HTTP/1.1",
        "GET /%0 HTTP/1.1", "GET /%zz HTTP/1.1", "GET /%00 HTTP/1.1", "GET /\x7f HTTP/1.1", "GET http:///x HTTP/1.1",
        "GET http://a@b/ HTTP/1.1", "\x16\x03\x01 / HTTP/1.1", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1"})
    EXPECT_EQ(status(std::string(line) + "\r\nHost: a\r\n\r\n"), 400) << line;
  EXPECT_EQ(status("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
}

TEST(RequestHead, absolute_targets_agree_with_the_host) {
  const ParsedHead p = good("GET http://LocalHost:80?q HTTP/1.1\r\nHost: localhost:80\r\n\r\n");
  EXPECT_EQ(p.head.path, "/");
  EXPECT_EQ(p.head.query, "q");
  EXPECT_EQ(status("GET http://evil/x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
  EXPECT_EQ(good("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").head.path, "*");
}

TEST(RequestHead, one_host) {
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), 400);
  EXPECT_EQ(good("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n").head.header("host"), "[::1]:8080");
}

TEST(RequestHead, line_ends_and_folds) {
  EXPECT_EQ(status("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\rb: c\r\n\r\n"), 400);
  EXPECT_EQ(status(with("A: b\r\n c\r\n")), 400);
  EXPECT_EQ(status(with("A: b\r\n\tc\r\n")), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400);
  EXPECT_EQ(status("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
  EXPECT_EQ(status("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status(with(std::string("A: b\0c\r\n", 8))), 400);
}

TEST(RequestHead, header_lines) {
  for (const char* line : {"A : b", ": b", "A", "A b: c", "A: \x01", "A: \x7f", "(A): b"})
    EXPECT_EQ(status(with(std::string(line) + "\r\n")), 400) << line;
  EXPECT_EQ(good(with("A:\r\n")).head.header("a"), "");
  EXPECT_EQ(good(with("A: \xff\xfe\r\n")).head.header("a"), "\xff\xfe");
}

TEST(RequestHead, framing_has_one_meaning) {
  EXPECT_EQ(good(with("Content-Length: 12\r\n")).content_length, 12u);
  EXPECT_TRUE(good(with("Transfer-Encoding: Chunked\r\n")).chunked);
  for (const char* headers :
       {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: 1, 1\r\n", "Content-Length: +1\r\n",
        "Content-Length: -1\r\n", "Content-Length: 0x1\r\n", "Content-Length: \r\n", "Content-Length: 1 1\r\n",
        "Content-Length: 9999999999999999999\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"})
    EXPECT_EQ(status(with(headers)), 400) << headers;
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked", ""})
    EXPECT_EQ(status(with("Transfer-Encoding: " + std::string(coding) + "\r\n")), 501) << coding;
  EXPECT_EQ(status("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestHead, expectations) {
  EXPECT_TRUE(good(with("Expect: 100-Continue\r\n")).expects_continue);
  EXPECT_EQ(status(with("Expect: 200-ok\r\n")), 417);
}

TEST(RequestHead, limits_to_the_byte) {
  HttpLimits limits;
  limits.request_line_bytes = 40;
  limits.head_bytes = 100;
  limits.headers_max = 3;
  const auto line = [](size_t bytes) { return "GET /" + std::string(bytes - 14, 'a') + " HTTP/1.1\r\n"; };
  for (const auto& [bytes, want] : {std::pair<size_t, int>{39, 200}, {40, 200}, {41, 414}})
    EXPECT_EQ(status(line(bytes) + "Host: a\r\n\r\n", limits), want) << bytes;
  for (const auto& [bytes, want] : {std::pair<size_t, int>{99, 200}, {100, 200}, {101, 431}}) {
    const std::string rest = "Host: a\r\nB: ";
    const std::string head = line(20) + rest + std::string(bytes - 22 - rest.size() - 4, 'b') + "\r\n\r\n";
    ASSERT_EQ(head.size(), bytes);
    EXPECT_EQ(status(head, limits), want) << bytes;
  }
  for (const auto& [count, want] : {std::pair<int, int>{2, 200}, {3, 200}, {4, 431}}) {
    std::string head = line(20) + "Host: a\r\n";
    for (int i = 1; i < count; ++i) head += "B: c\r\n";
    EXPECT_EQ(status(head + "\r\n", limits), want) << count;
  }
  // Refused before the end is there.
  EXPECT_EQ(status(std::string(41, 'G'), limits), 414);
  EXPECT_EQ(status(line(20) + "B: " + std::string(80, 'b'), limits), 431);
}

TEST(RequestHead, the_scanner_finds_the_same_end_however_bytes_come) {
  const std::string bytes = "\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\nbody\r\n\r\n";
  const HttpLimits limits;
  for (size_t step = 1; step <= bytes.size(); ++step) {
    HeadScanner scanner(limits);
    std::optional<size_t> found;
    for (size_t n = step; !found && n < bytes.size() + step; n += step)
      found = std::get<std::optional<size_t>>(scanner.scan(std::string_view(bytes).substr(0, n)));
    EXPECT_EQ(found, bytes.size() - 8) << step;
  }
}

TEST(Percent, decode) {
  EXPECT_EQ(percent_decode("a%2Fb+c"), "a/b+c");
  EXPECT_EQ(percent_decode("a+b%2b", Plus::space), "a b+");
  for (const char* bad : {"%", "%1", "a%1", "%g0", "%00", "%0g"}) EXPECT_EQ(percent_decode(bad), std::nullopt) << bad;
}

TEST(Percent, query_parameters) {
  EXPECT_EQ(query_parameters("a=1&b&&c=%20x+y=z&"), (std::vector<Header>{{"a", "1"}, {"b", ""}, {"c", " x y=z"}}));
  EXPECT_EQ(query_parameters("a=%f"), std::nullopt);
  EXPECT_EQ(query_parameters("a&b&c", 2), std::nullopt);
  EXPECT_EQ(query_parameters("a&b", 2)->size(), 2u);
}

}  // namespace
}  // namespace hearth::net
