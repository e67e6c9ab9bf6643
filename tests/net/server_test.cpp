#include "net/server.h"

#include "base/error.h"
#include "net/fixture.h"
#include "support/temp_dir.h"

namespace hearth::net::test {
namespace {

TEST(HttpServer, answers) {
  const Server server;
  RawClient client = server.client();
  const RawResponse r = client.ask(get("/hello"));
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.body, "hello");
  EXPECT_NE(r.head.find("Content-Type: text/plain\r\n"), r.head.npos) << r.head;
  EXPECT_NE(r.head.find("\r\nDate: "), r.head.npos) << r.head;
  EXPECT_EQ(r.head.find("Connection:"), r.head.npos) << r.head;
  EXPECT_EQ(client.ask(post("/echo", "a body")).body, "a body");
  EXPECT_EQ(client.ask(get("/describe?x=%20")).body, "GET /describe x=%20 127.0.0.1 ");
  EXPECT_EQ(client.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status, 404);  // the owner's answer
}

TEST(HttpServer, requests_split_at_every_byte) {
  const Server server;
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: t\r\n\r\n";
  for (const std::string& request : {get("/hello"), post("/echo", "abcde"), chunked}) {
    RawClient client = server.client();
    for (size_t cut = 1; cut < request.size(); ++cut) {
      client.send(std::string_view(request).substr(0, cut));
      std::this_thread::sleep_for(200us);
      client.send(std::string_view(request).substr(cut));
      const RawResponse r = client.response();
      EXPECT_EQ(r.status, 200) << cut;
      EXPECT_EQ(r.body, request.starts_with("GET") ? "hello" : "abcde") << cut;
    }
  }
}

TEST(HttpServer, requests_byte_by_byte) {
  const Server server;
  RawClient client = server.client();
  for (const char c : post("/echo", "abc")) client.send({&c, 1});
  EXPECT_EQ(client.response().body, "abc");
}

TEST(HttpServer, pipelined_requests_are_answered_in_order) {
  const Server server({.threads = 2});
  RawClient client = server.client();
  std::string all;
  for (int i = 0; i < 200; ++i)
    all += i % 3 == 0 ? post("/echo", "body " + std::to_string(i)) : get("/describe?" + std::to_string(i));
  client.send(all);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(client.response().body,
              i % 3 == 0 ? "body " + std::to_string(i) : "GET /describe " + std::to_string(i) + " 127.0.0.1 ");
}

TEST(HttpServer, pipelined_requests_wait_for_a_slow_one) {
  Server server;
  RawClient client = server.client();
  client.send(get("/hold") + get("/hello"));
  const auto slow = server.held.get();
  ASSERT_TRUE(slow);
  EXPECT_FALSE(client.receive(50));
  (*slow)->send(text("slow"));
  EXPECT_EQ(client.response().body, "slow");
  EXPECT_EQ(client.response().body, "hello");
}

TEST(HttpServer, connection_close) {
  const Server server;
  for (const std::string& request :
       {get("/hello", "Connection: close\r\n"), std::string("GET /hello HTTP/1.0\r\n\r\n")}) {
    RawClient client = server.client();
    const RawResponse r = client.ask(request);
    EXPECT_EQ(r.body, "hello");
    EXPECT_NE(r.head.find("Connection: close\r\n"), r.head.npos);
    EXPECT_TRUE(client.wait_closed(1000));
  }
}

TEST(HttpServer, head_requests_have_no_body) {
  const Server server;
  RawClient client = server.client();
  client.send("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n" + get("/none") + get("/hello"));
  const RawResponse head = client.response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.head.find("Content-Length: 5\r\n"), head.head.npos);
  const RawResponse none = client.response();
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.head.find("Content-Length"), none.head.npos);
  EXPECT_EQ(client.response().body, "hello");
}

TEST(HttpServer, expect_continue) {
  const Server server;
  RawClient client = server.client();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.response().status, 100);
  client.send("abc");
  EXPECT_EQ(client.response().body, "abc");
  // Refused by its head: no 100.
  client.send("POST /refuse HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.response().status, 401);
  EXPECT_TRUE(client.wait_closed(1000));
}

TEST(HttpServer, a_refusal_before_the_body_ends_the_connection_only_if_a_body_comes) {
  const Server server;
  RawClient client = server.client();
  EXPECT_EQ(client.ask(get("/refuse")).status, 401);
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
  const RawResponse r = client.ask(post("/refuse", "abc"));
  EXPECT_EQ(r.status, 401);
  EXPECT_NE(r.head.find("Connection: close"), r.head.npos);
  EXPECT_TRUE(client.wait_closed(1000));
}

TEST(HttpServer, owners_that_fail_are_500) {
  const Server server;
  RawClient client = server.client();
  EXPECT_EQ(client.ask(get("/drop")).status, 500);
  EXPECT_EQ(client.ask(get("/throw")).status, 500);
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
  EXPECT_EQ(client.ask(get("/throw_early")).status, 500);
}

TEST(HttpServer, the_owner_writes_error_bodies) {
  Handlers handlers;
  handlers.on_head = [](const RequestHead&) { return BodyPlan{10}; };
  handlers.on_request = [](Request, const std::shared_ptr<Exchange>&) {};
  handlers.error_body = [](int status, std::string_view sentence, std::string_view path) {
    return Response{.status = status,
                    .headers = {{"x-request-id", "7"}, {"x-path", std::string(path)}},
                    .body = "{" + std::string(sentence) + "}"};
  };
  const HttpServer server({}, handlers);
  struct Case {
    std::string request;
    int status;
    std::string path;
  };
  for (const auto& [request, status, path] :
       {Case{"nonsense\r\n\r\n", 400, ""}, Case{post("/p", "12345678901"), 413, "/p"}, Case{get("/a?b"), 500, "/a"},
        Case{"POST /v1/x HTTP/9.9\r\n\r\n", 505, "/v1/x"}, Case{"POST /v%31/x?q HTTP/1.1\r\n\r\n", 400, "/v1/x"},
        Case{"POST http://h/y HTTP/1.1\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n", 431, "/y"}}) {
    RawClient client(server.port());
    const RawResponse r = client.ask(request);
    EXPECT_EQ(r.status, status);
    EXPECT_NE(r.head.find("x-path: " + path + "\r\n"), r.head.npos) << r.head;
    EXPECT_NE(r.head.find("x-request-id: 7\r\n"), r.head.npos);
    EXPECT_TRUE(r.body.starts_with("{") && r.body.ends_with("}")) << r.body;
  }
}

TEST(HttpServer, answers_cannot_break_out_of_their_headers) {
  Server server;
  RawClient client = server.client();
  client.send(get("/hold"));
  const auto exchange = server.held.get();
  ASSERT_TRUE(exchange);
  for (const Header& header :
       {Header("A", "b\r\nC: d"), {"A B", "c"}, {"Content-Length", "1"}, {"transfer-encoding", "chunked"}, {"", "x"}})
    EXPECT_THROW((*exchange)->send({.headers = {header}}), Error) << header.first;
  EXPECT_THROW((*exchange)->send({.status = 101}), Error);
  EXPECT_THROW((*exchange)->send({.content_type = "a\nb"}), Error);
  EXPECT_THROW((*exchange)->write("x"), Error);
  (*exchange)->send(text("whole"));
  EXPECT_THROW((*exchange)->send(text("again")), Error);
  EXPECT_THROW((*exchange)->begin_stream(200, {}, ""), Error);
  EXPECT_EQ(client.response().body, "whole");
}

TEST(HttpServer, large_bodies) {
  const Server server({}, 8 << 20);
  RawClient client = server.client();
  std::string body(5 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 97) body[i] = static_cast<char>('a' + i % 23);
  std::thread sender([&] { client.send(post("/echo", body)); });
  const RawResponse r = client.response();
  sender.join();
  EXPECT_TRUE(r.body == body) << r.body.size();
}

TEST(HttpServer, half_closed_clients_get_their_answers) {
  const Server server;
  RawClient client = server.client();
  client.send(get("/hello") + get("/describe?2"));
  client.finish_sending();
  EXPECT_EQ(client.response().body, "hello");
  EXPECT_EQ(client.response().body, "GET /describe 2 127.0.0.1 ");
  EXPECT_TRUE(client.wait_closed(1000));
}

TEST(HttpServer, connect_and_close_leaves_nothing) {
  const Server server;
  EXPECT_EQ(server.client().ask(get("/hello")).status, 200);
  ASSERT_TRUE(eventually([&] { return server.server->connections() == 0; }));
  const size_t before = open_descriptors();
  for (int i = 0; i < 500; ++i) {
    RawClient client = server.client();
    if (i % 4 == 1) client.send("GET /hel");
    if (i % 4 == 2) client.send(get("/hello"));
    if (i % 4 == 3) client.reset();
  }
  EXPECT_TRUE(eventually([&] { return server.server->connections() == 0; }));
  EXPECT_EQ(open_descriptors(), before);
}

TEST(HttpServer, timers) {
  const Server server;
  Awaited<int> order;
  server.server->after(30ms, [&] { order.put(2); });
  server.server->after(1ms, [&] { order.put(1); });
  server.server->after(2ms, [] { throw std::runtime_error("on purpose"); });  // the I/O thread goes on
  EXPECT_EQ(order.get(), 1);
  EXPECT_EQ(order.get(), 2);
  EXPECT_EQ(server.client().ask(get("/hello")).status, 200);
}

TEST(HttpServer, drain_waits_for_answers) {
  Server server;
  RawClient idle = server.client(), busy = server.client();
  EXPECT_EQ(idle.ask(get("/hello")).status, 200);
  busy.send(get("/hold"));
  const auto exchange = server.held.get();
  ASSERT_TRUE(exchange);
  const int port = server.port();
  std::thread later([&] {
    EXPECT_TRUE(idle.wait_closed(1000));
    EXPECT_THROW(RawClient{port}, std::runtime_error);
    (*exchange)->send(text("at last"));
  });
  EXPECT_EQ(server.server->drain(5s), 0u);
  later.join();
  const RawResponse r = busy.response();
  EXPECT_EQ(r.body, "at last");
  EXPECT_NE(r.head.find("Connection: close"), r.head.npos);
}

TEST(HttpServer, drain_gives_up_in_time) {
  Server server;
  RawClient client = server.client();
  client.send(get("/hold"));
  const auto exchange = server.held.get();
  ASSERT_TRUE(exchange);
  EXPECT_EQ(server.server->drain(20ms), 1u);
  Awaited<Exchange::End> end;
  (*exchange)->on_closed([&](Exchange::End e) { end.put(e); });
  server.server.reset();
  EXPECT_EQ(end.count(), 1u);
  EXPECT_EQ(end.get(0ms), Exchange::End::cut);
  (*exchange)->send(text("too late"));  // and nothing happens
  EXPECT_EQ((*exchange)->buffered(), 0u);
  EXPECT_TRUE(client.wait_closed(1000));
}

TEST(HttpServer, a_refusal_may_be_held_back_while_others_are_served) {
  Handlers handlers;
  handlers.on_head = [](const RequestHead& head) -> std::variant<Response, BodyPlan> {
    return Response{.status = 401, .body = head.path, .delay = Milliseconds(head.path == "/slow" ? 300 : 0)};
  };
  handlers.on_request = [](Request, const std::shared_ptr<Exchange>&) {};
  const HttpServer server({}, handlers);
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::steady_clock::now() - begin; };
  RawClient slow(server.port()), gone(server.port()), quick(server.port());
  ASSERT_TRUE(slow.send(get("/slow") + get("/next")));
  ASSERT_TRUE(gone.send(get("/slow")));
  gone.reset();
  EXPECT_EQ(quick.ask(get("/quick")).body, "/quick");
  EXPECT_LT(passed(), Milliseconds(250));
  EXPECT_EQ(slow.response().body, "/slow");
  EXPECT_GE(passed(), Milliseconds(300));
  EXPECT_EQ(slow.response().body, "/next") << "in their order";
}

TEST(HttpServer, clients_wait_until_it_is_told_to_begin) {
  Server server({.begins = ServerOptions::Begins::when_told});
  RawClient client = server.client();
  client.send(get("/hello"));
  EXPECT_FALSE(client.receive(100)) << "nobody answers yet";
  server.server->start();
  EXPECT_EQ(client.response().body, "hello");
}

TEST(HttpServer, one_that_never_began_leaves_no_socket_file) {
  const hearth::test::TempDir dir;
  const std::string path = dir.path() / "socket";
  {
    const Server server({.host = "", .unix_path = path, .begins = ServerOptions::Begins::when_told});
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HttpServer, options_are_checked) {
  Handlers handlers;
  EXPECT_THROW(HttpServer({}, handlers), Error);
  handlers.on_head = [](const RequestHead&) { return BodyPlan{}; };
  handlers.on_request = [](Request, const std::shared_ptr<Exchange>&) {};
  EXPECT_THROW(HttpServer({.threads = 0}, handlers), Error);
  EXPECT_THROW(HttpServer({.host = ""}, handlers), Error);
  EXPECT_THROW(HttpServer({.port = 70000}, handlers), Error);
}

}  // namespace
}  // namespace hearth::net::test
