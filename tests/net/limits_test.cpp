// what strangers may cost, each limit below, at and above.
#include <fmt/format.h>
#include <sys/resource.h>

#include "net/fixture.h"

namespace hearth::net::test {
namespace {

int status_of(const Server& server, const std::string& bytes) {
  RawClient client = server.client();
  const RawResponse r = client.ask(bytes);
  if (r.status >= 400) {
    EXPECT_NE(r.head.find("Connection: close"), r.head.npos) << r.head;
    EXPECT_TRUE(client.wait_closed(1000)) << bytes.substr(0, 200);
  }
  return r.status;
}

TEST(HttpLimits, hostile_requests_are_refused_and_the_connection_ends) {
  const Server server;
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  for (const auto& [bytes, status] : std::vector<std::pair<std::string, int>>{
           {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
           {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400},
           {"GET /hello HTTP/1.1\nHost: a\n\n", 400},
           {head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
           {head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
           {head + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n", 400},
           {head + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400},
           {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
           {head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", 413},
           {head + "Content-Length: 999999999999999999\r\n\r\n", 413},
           {head + "Expect: a miracle\r\nContent-Length: 1\r\n\r\n", 417},
           {head + "Transfer-Encoding: gzip\r\n\r\n", 501}})
    EXPECT_EQ(status_of(server, bytes), status) << bytes.substr(0, 200);
  EXPECT_EQ(status_of(server, get("/hello")), 200);
}

TEST(HttpLimits, head) {
  const Server server;
  const auto with_line = [](size_t n) {
    return "GET /hello?" + std::string(n - 20, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  EXPECT_EQ(status_of(server, with_line(8191)), 200);
  EXPECT_EQ(status_of(server, with_line(8192)), 200);
  EXPECT_EQ(status_of(server, with_line(8193)), 414);
  const auto with_head = [](size_t n) {
    const std::string head = get("/hello", "X: \r\n");
    return get("/hello", "X: " + std::string(n - head.size(), 'x') + "\r\n");
  };
  EXPECT_EQ(status_of(server, with_head((16 << 10) - 1)), 200);
  EXPECT_EQ(status_of(server, with_head(16 << 10)), 200);
  EXPECT_EQ(status_of(server, with_head((16 << 10) + 1)), 431);
  const auto with_headers = [](int n) {
    std::string headers;
    for (int i = 1; i < n; ++i) headers += "X: y\r\n";
    return get("/hello", headers);
  };
  EXPECT_EQ(status_of(server, with_headers(99)), 200);
  EXPECT_EQ(status_of(server, with_headers(100)), 200);
  EXPECT_EQ(status_of(server, with_headers(101)), 431);
}

TEST(HttpLimits, bodies_by_length_and_in_chunks) {
  const Server server({}, 1000);
  const auto chunked = [](size_t n) {
    std::string out = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (size_t i = 0; i < n; ++i) out += "1\r\nx\r\n";
    return out + "0\r\n\r\n";
  };
  for (const auto& [n, status] : {std::pair<size_t, int>{999, 200}, {1000, 200}, {1001, 413}}) {
    EXPECT_EQ(status_of(server, post("/echo", std::string(n, 'x'))), status) << n;
    EXPECT_EQ(status_of(server, chunked(n)), status) << n;
  }
}

// The client goes on sending 33 MiB and still reads why it was refused.
TEST(HttpLimits, the_answer_to_a_body_that_is_too_large_arrives) {
  const Server server({}, 1 << 20);
  RawClient client = server.client();
  std::thread sender([&] { client.send(post("/echo", std::string(33 << 20, 'x'))); });
  const RawResponse r = client.response();
  sender.join();
  EXPECT_EQ(r.status, 413);
  EXPECT_EQ(r.body, "the body has 34603008 bytes, at most 1048576 are accepted\n");
}

TEST(HttpLimits, endless_chunks) {
  const Server server({}, 1 << 20);
  RawClient client = server.client();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::thread sender([&] {
    const std::string piece = "400\r\n" + std::string(1024, 'x') + "\r\n";
    for (int i = 0; i < 3000 && client.send(piece); ++i) {
    }
  });
  EXPECT_EQ(client.response().status, 413);
  sender.join();
}

TEST(HttpLimits, slow_heads_and_bodies) {
  HttpLimits limits;
  limits.head_time = 100ms;
  limits.body_idle = 100ms;
  const Server server({.limits = limits});
  {
    RawClient client = server.client();
    client.send("GET /hello HT");
    EXPECT_EQ(client.response().status, 408);
  }
  {  // a byte now and then does not help
    RawClient client = server.client();
    const auto begin = std::chrono::steady_clock::now();
    for (const char c : get("/hello", "X: " + std::string(100, 'x') + "\r\n")) {
      if (!client.send({&c, 1}) || client.receive(10)) break;
    }
    EXPECT_EQ(client.response().status, 408);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  }
  {
    RawClient client = server.client();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    EXPECT_EQ(client.response().status, 408);
  }
  {  // as long as something comes, a body may take its time
    RawClient client = server.client();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
    for (const char c : std::string("abcdef")) {
      std::this_thread::sleep_for(30ms);
      client.send({&c, 1});
    }
    EXPECT_EQ(client.response().body, "abcdef");
  }
  {  // nothing at all: no answer, only the end
    RawClient client = server.client();
    EXPECT_TRUE(client.wait_closed(2000));
    EXPECT_EQ(client.buffer(), "");
  }
}

TEST(HttpLimits, each_one_that_is_passed_is_told_once) {
  HttpLimits limits{.head_bytes = 4 << 10, .head_time = 50ms, .body_idle = 50ms, .connections_max = 2};
  Server server({.limits = limits}, 1000);
  const std::string chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n";
  const std::string body = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na";
  std::string headers;
  for (int i = 0; i < 101; ++i) headers += "X: y\r\n";
  limits.request_line_bytes = 100;
  Server lines({.limits = limits});
  EXPECT_EQ(status_of(lines, get("/" + std::string(100, 'a'))), 414);
  EXPECT_EQ(lines.limits.get(1s)->first, HttpLimit::request_line);
  for (const auto& [bytes, limit, path] : std::vector<std::tuple<std::string, HttpLimit, std::string>>{
           {get("/hello", "X: " + std::string(4 << 10, 'x') + "\r\n"), HttpLimit::head, ""},
           {get("/hello", headers), HttpLimit::headers, ""},
           {post("/echo", std::string(1001, 'x')), HttpLimit::body, "/echo"},
           {chunked, HttpLimit::body, "/echo"},
           {body, HttpLimit::body_idle, "/echo"},
           {"GET /hello", HttpLimit::head_time, ""}}) {
    EXPECT_GE(status_of(server, bytes), 400);
    const auto told = server.limits.get(1s);
    ASSERT_TRUE(told) << bytes.substr(0, 100);
    EXPECT_EQ(told->first, limit) << bytes.substr(0, 100);
    EXPECT_EQ(told->second, path) << bytes.substr(0, 100);
  }
  std::vector<RawClient> busy;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(server.client());
    busy.back().send(get("/hold"));
    exchanges.push_back(server.held.get().value());
  }
  EXPECT_EQ(server.client().ask(get("/hello")).status, 503);
  EXPECT_EQ(server.limits.get(1s)->first, HttpLimit::connections);
  EXPECT_EQ(server.limits.count(), 7u);
}

TEST(HttpLimits, idle_connections_end) {
  HttpLimits limits;
  limits.keep_alive_idle = 50ms;
  Server server({.limits = limits});
  RawClient client = server.client();
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
  EXPECT_TRUE(client.wait_closed(2000));
  // Waiting for an answer is not idle.
  RawClient busy = server.client();
  busy.send(get("/hold"));
  const auto exchange = server.held.get();
  ASSERT_TRUE(exchange);
  std::this_thread::sleep_for(150ms);
  (*exchange)->send(text("late"));
  EXPECT_EQ(busy.response().body, "late");
}

TEST(HttpLimits, connections) {
  HttpLimits limits;
  limits.connections_max = 3;
  Server server({.limits = limits});
  std::vector<RawClient> busy;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(server.client());
    busy.back().send(get("/hold"));
    exchanges.push_back(server.held.get().value());
  }
  RawClient idle = server.client();
  EXPECT_EQ(idle.ask(get("/hello")).status, 200);
  // The idle one makes room, as soon as the server knows that its answer is written.
  std::optional<RawClient> third;
  ASSERT_TRUE(eventually([&] {
    third.emplace(server.port());
    third->send(get("/hold"));
    if (auto exchange = server.held.get(100ms)) exchanges.push_back(*exchange);
    return exchanges.size() == 3;
  }));
  EXPECT_TRUE(idle.wait_closed(1000));
  ASSERT_TRUE(eventually([&] { return server.server->connections() == 3; }));
  // Now nobody is idle.
  RawClient fourth = server.client();
  const RawResponse r = fourth.ask(get("/hello"));
  EXPECT_EQ(r.status, 503);
  EXPECT_NE(r.head.find("Retry-After: 1\r\n"), r.head.npos);
  EXPECT_TRUE(fourth.wait_closed(1000));
  for (auto& exchange : exchanges) exchange->send(text("done"));
  for (RawClient& client : busy) EXPECT_EQ(client.response().body, "done");
  EXPECT_EQ(third->response().body, "done");
  ASSERT_TRUE(eventually([&] { return server.client().ask(get("/hello")).status == 200; }));
}

// R-15 in small: others hold connections and send nothing useful, a healthy client is served.
TEST(HttpLimits, rude_clients_do_not_hinder_others) {
  HttpLimits limits;
  limits.connections_max = 200;
  const Server server({.limits = limits});
  std::vector<RawClient> rude;
  for (int i = 0; i < 150; ++i) {
    rude.push_back(server.client());
    rude.back().send(i % 2 ? "GET / HTTP/1.1\r\nX: " : "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na");
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(server.client().ask(get("/hello")).status, 200);
}

// Both ends of a connection are descriptors of this process.
void allow_descriptors(rlim_t n) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur >= n) return;
  ASSERT_GE(limit.rlim_max, n) << "ulimit -Hn is too low for this test";
  limit.rlim_cur = n;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(HttpLimits, bodies_at_full_size) {
  constexpr size_t kMax = size_t{32} << 20;
  Server server({}, kMax);
  server.on_other = [](Request request, const std::shared_ptr<Exchange>& exchange) {
    exchange->send(text(std::to_string(request.body.size())));
  };
  const auto chunked = [](size_t n) {
    std::string out = "POST /size HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    constexpr size_t kPiece = 60'000;
    for (size_t left = n; left > 0;) {
      const size_t piece = std::min(left, kPiece);
      out += fmt::format("{:x}\r\n{}\r\n", piece, std::string(piece, 'x'));
      left -= piece;
    }
    return out + "0\r\n\r\n";
  };
  for (const size_t n : {kMax - 1, kMax, kMax + 1})
    for (const std::string& bytes : {post("/size", std::string(n, 'x')), chunked(n)}) {
      RawClient client = server.client();
      std::thread sender([&] { client.send(bytes); });
      const RawResponse r = client.response();
      sender.join();
      EXPECT_EQ(r.status, n <= kMax ? 200 : 413) << n;
      if (n <= kMax) {
        EXPECT_EQ(r.body, std::to_string(n));
      }
    }
}

TEST(HttpLimits, connections_at_full_size) {
  const size_t most = HttpLimits{}.connections_max;
  allow_descriptors(2 * most + 500);
  Server server;
  std::vector<RawClient> clients;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (size_t n = 1; n <= most; ++n) {
    clients.push_back(server.client());
    clients.back().send(get("/hold"));
    exchanges.push_back(server.held.get().value());
    EXPECT_EQ(server.server->connections(), n);
  }
  EXPECT_EQ(server.client().ask(get("/hello")).status, 503);
  for (auto& exchange : exchanges) exchange->send(text("done"));
  for (RawClient& client : clients) EXPECT_EQ(client.response().body, "done");
  EXPECT_TRUE(eventually([&] { return server.client().ask(get("/hello")).status == 200; }));
}

// 500 slow heads, 500 slow bodies, 200 that do not read, more than there may be; healthy clients see none of it,
// and nothing is left of the others.
TEST(HttpLimits, slow_clients_at_full_size_hinder_nobody) {
  allow_descriptors(4096);
  const size_t before = open_descriptors();
  {
    Server server;
    server.on_other = [](const Request&, const std::shared_ptr<Exchange>& exchange) {
      exchange->send(text(std::string(4 << 20, 'x')));
    };
    std::vector<RawClient> slow;
    const auto add = [&](const std::string& bytes, int receive_bytes = 0) {
      slow.emplace_back(server.port(), receive_bytes);
      slow.back().send(bytes);
    };
    for (int i = 0; i < 500; ++i) {
      add("GET /hello HTTP/1.1\r\nX-Slow: ");
      add("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\na");
      if (i < 200) add(get("/big"), 4096);
      if (i % 5 == 0) {
        ASSERT_EQ(server.client().ask(get("/hello")).status, 200) << i;
      }
    }
    EXPECT_TRUE(eventually([&] { return server.server->connections() <= HttpLimits{}.connections_max; }));
    for (int i = 0; i < 100; ++i) {
      for (size_t j = static_cast<size_t>(i); j < slow.size(); j += 100) slow[j].send("y");  // they go on, byte by byte
      ASSERT_EQ(server.client().ask(get("/hello")).status, 200) << i;
    }
    slow.clear();
    EXPECT_TRUE(eventually([&] { return server.server->connections() == 0; }));
  }
  EXPECT_EQ(open_descriptors(), before);
}

// With the times of the product: 10 s for a head, 30 s between two pieces of a body.
TEST(HttpLimitsFull, half_open_connections_end) {
  const Server server;
  RawClient head = server.client(), body = server.client(), nothing = server.client();
  head.send("GET /hello HTTP/1.1\r\nX: ");
  body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na");
  EXPECT_TRUE(nothing.wait_closed(15'000));
  EXPECT_EQ(head.response().status, 408);
  EXPECT_FALSE(body.receive(10'000)) << "it still has time";
  EXPECT_TRUE(body.timed_out());
  ASSERT_TRUE(body.receive(20'000));
  EXPECT_EQ(body.response().status, 408);
}

}  // namespace
}  // namespace hearth::net::test
