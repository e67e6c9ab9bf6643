#include "net/http_client.h"

#include "base/error.h"
#include "net/fixture.h"
#include "support/outcome.h"
#include "support/temp_dir.h"

namespace hearth::net::test {
namespace {

using hearth::test::outcome;

// Says one thing to whoever connects, then closes.
class Scripted {
 public:
  explicit Scripted(std::string answer)
      : listener_(listen_tcp("127.0.0.1", 0)), thread_([this, answer = std::move(answer)] {
          pollfd look{listener_.socket.get(), POLLIN, 0};
          ::poll(&look, 1, kPatienceMs);
          const Descriptor peer(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
          char request[4096];
          (void)!::recv(peer.get(), request, sizeof request, 0);
          ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        }) {}
  ~Scripted() { thread_.join(); }
  Endpoint endpoint() const { return {.port = listener_.port}; }

 private:
  Listener listener_;
  std::thread thread_;
};

TEST(HttpClient, asks_the_server) {
  const Server server;
  const Endpoint endpoint{.port = server.port()};
  const ClientResponse r =
      http_request(endpoint, {.method = "POST", .target = "/echo", .body = std::string(200'000, 'x')});
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.body, std::string(200'000, 'x'));
  EXPECT_EQ(r.header("content-TYPE"), "text/plain");
  EXPECT_EQ(http_request(endpoint, {.target = "/nothing"}).status, 404);
  EXPECT_EQ(http_request(endpoint, {.target = "/none"}).status, 204);
  EXPECT_EQ(http_request(endpoint, {.method = "HEAD", .target = "/hello"}).body, "");
}

TEST(HttpClient, over_a_unix_socket) {
  const hearth::test::TempDir dir;
  const std::string path = dir.path() / "socket";
  const Server server({.host = "", .unix_path = path});
  EXPECT_EQ(http_request({.unix_path = path}, {.target = "/hello"}).body, "hello");
}

TEST(HttpClient, streams_until_it_has_enough) {
  Server server;
  Awaited<Exchange::End> end;
  server.on_other = [&](Request, std::shared_ptr<Exchange> exchange) {
    exchange->on_closed([&](Exchange::End e) { end.put(e); });
    exchange->begin_stream(200, {}, "text/plain");
    exchange->write("one");
    server.held.put(std::move(exchange));
  };
  std::string seen;
  std::shared_ptr<Exchange> stream;
  const ClientResponse r = http_request({.port = server.port()}, {.target = "/stream"}, [&](std::string_view piece) {
    seen += piece;
    if (seen == "one") {
      stream = server.held.get().value();
      stream->write("two");
    }
    return seen != "onetwo";
  });
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(seen, "onetwo");
  EXPECT_EQ(end.get(), Exchange::End::peer_gone);
}

TEST(HttpClient, says_what_is_wrong) {
  const int closed_port = listen_tcp("127.0.0.1", 0).port;
  const std::string at = "127.0.0.1:" + std::to_string(closed_port);
  EXPECT_EQ(outcome([&] { http_request({.port = closed_port}, {}); }), "not_found: " + at + ": nobody listens there");
  EXPECT_EQ(outcome([] { http_request({.unix_path = "/nonexistent/socket"}, {}); }),
            "not_found: /nonexistent/socket: nobody listens there");
  EXPECT_TRUE(
      outcome([&] { http_request({.port = closed_port}, {.target = "/a b"}); }).starts_with("invalid_argument: "));
  EXPECT_TRUE(outcome([&] {
                http_request({.port = closed_port}, {.headers = {{"A", "b\r\nC: d"}}});
              }).starts_with("invalid_argument: "));
}

TEST(HttpClient, answers_that_are_none) {
  for (const auto& [answer, kind] : std::vector<std::pair<std::string, std::string>>{
           {"", "io: "},
           {"HTTP/1.1 200 OK\r\n", "io: "},
           {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "io: "},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "io: "},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "corrupt_file: "},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "corrupt_file: "},
           {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "corrupt_file: "},
           {"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "corrupt_file: "},
           {"HTTP/2 200\r\n\r\n", "corrupt_file: "},
           {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "corrupt_file: "},
           {std::string(100'000, 'x'), "corrupt_file: "}}) {
    const Scripted server(answer);
    const std::string got = outcome([&] { http_request(server.endpoint(), {}); });
    EXPECT_TRUE(got.starts_with(kind)) << answer.substr(0, 100) << ": " << got;
  }
}

TEST(HttpClient, framings) {
  for (const char* answer :
       {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.0 200\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"}) {
    const Scripted server(answer);
    EXPECT_EQ(http_request(server.endpoint(), {}).body, "abc") << answer;
  }
}

TEST(HttpClient, does_not_wait_for_ever) {
  Server server;
  EXPECT_TRUE(outcome([&] {
                http_request({.port = server.port()}, {.target = "/hold"}, {}, {.idle = 30ms});
              }).ends_with(": silent for 30 ms"));
}

}  // namespace
}  // namespace hearth::net::test
