// Streams and their ends: server.md 46-49, R-18 as far as it is the connection's part.
#include "base/error.h"
#include "net/fixture.h"

namespace hearth::net::test {
namespace {

struct Held {
  std::shared_ptr<Exchange> exchange;
  std::shared_ptr<Awaited<Exchange::End>> end = std::make_shared<Awaited<Exchange::End>>();
};

Held hold(Server& server, RawClient& client, std::string_view request = {}) {
  client.send(request.empty() ? get("/hold") : std::string(request));
  Held out{server.held.get().value()};
  out.exchange->on_closed([end = out.end](Exchange::End e) { end->put(e); });
  return out;
}

TEST(Stream, chunks_arrive_and_the_connection_goes_on) {
  Server server;
  RawClient client = server.client();
  Held h = hold(server, client);
  h.exchange->begin_stream(200, {{"Cache-Control", "no-cache"}}, std::string(kEventStream));
  EXPECT_TRUE(client.wait_for("\r\n\r\n"));  // the head goes out before there is anything to say
  std::string want;
  for (int i = 0; i < 500; ++i) {
    const std::string event = sse_event("", std::to_string(i));
    want += event;
    EXPECT_TRUE(h.exchange->write(event));
  }
  h.exchange->end();
  const RawResponse r = client.response();
  EXPECT_TRUE(r.whole);
  EXPECT_EQ(r.body, want);
  EXPECT_NE(r.head.find("Transfer-Encoding: chunked"), r.head.npos);
  EXPECT_EQ(h.end->get(), Exchange::End::done);
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
  EXPECT_EQ(h.end->count(), 1u);
}

TEST(Stream, http_1_0_streams_to_the_end_of_the_connection) {
  Server server;
  RawClient client = server.client();
  Held h = hold(server, client, "GET /hold HTTP/1.0\r\n\r\n");
  h.exchange->begin_stream(200, {}, "text/plain");
  h.exchange->write("abc");
  h.exchange->write("def");
  h.exchange->end();
  const RawResponse r = client.response();
  EXPECT_EQ(r.body, "abcdef");
  EXPECT_NE(r.head.find("Connection: close"), r.head.npos);
  EXPECT_EQ(r.head.find("chunked"), r.head.npos);
}

TEST(Stream, head_requests_get_the_head_alone) {
  Server server;
  RawClient client = server.client();
  Held h = hold(server, client, "HEAD /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  h.exchange->begin_stream(200, {}, "text/plain");
  h.exchange->write("abc");
  h.exchange->end();
  EXPECT_EQ(client.response(true).status, 200);
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
}

TEST(Stream, a_stream_that_is_dropped_is_not_taken_for_whole) {
  Server server;
  for (const bool by_abort : {false, true}) {
    RawClient client = server.client();
    Held h = hold(server, client);
    h.exchange->begin_stream(200, {}, "text/plain");
    h.exchange->write("abc");
    EXPECT_TRUE(client.wait_for("abc"));
    if (by_abort) h.exchange->abort();
    h.exchange.reset();
    EXPECT_FALSE(client.response().whole);
    EXPECT_EQ(h.end->get(), Exchange::End::cut);
  }
}

TEST(Stream, the_first_piece_goes_at_once_and_later_ones_together) {
  HttpLimits limits;
  limits.coalesce = 100ms;
  Server server({.limits = limits});
  RawClient client = server.client();
  Held h = hold(server, client);
  const auto begin = std::chrono::steady_clock::now();
  h.exchange->begin_stream(200, {}, "text/plain");
  EXPECT_TRUE(client.wait_for("\r\n\r\n"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 80ms);
  for (int i = 0; i < 50; ++i) h.exchange->write("x");
  EXPECT_TRUE(client.wait_for("32\r\n" + std::string(50, 'x') + "\r\n")) << client.buffer();  // one chunk
  h.exchange->end();
  EXPECT_TRUE(client.response().whole);
}

TEST(Stream, silence_is_broken_by_pings) {
  Server server;
  RawClient client = server.client();
  Held h = hold(server, client);
  h.exchange->begin_stream(200, {}, std::string(kEventStream));
  server.server->ping(h.exchange, sse_comment("ping"), 60ms);
  for (int i = 0; i < 10; ++i) h.exchange->write("x"), std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(client.wait_for(": ping"));
  h.exchange->write("y");
  EXPECT_TRUE(client.wait_for("y\r\n"));
  EXPECT_GE(client.buffer().find(": ping"), client.buffer().rfind('x')) << client.buffer();
  h.exchange->end();
  EXPECT_TRUE(client.response().whole);
  EXPECT_EQ(h.end->get(), Exchange::End::done);
  EXPECT_FALSE(client.receive(100));  // no ping after the end
  EXPECT_THROW(server.server->ping(h.exchange, "", 0ms), Error);
}

// R-18's share: the client's end is seen within 250 ms, whatever the exchange does.
TEST(Stream, vanished_clients_are_seen) {
  Server server({.threads = 2});
  enum class Phase { silent, streaming, busy_writing, pipelined, pipelined_full };
  for (const Phase phase :
       {Phase::silent, Phase::streaming, Phase::busy_writing, Phase::pipelined, Phase::pipelined_full}) {
    for (const bool by_reset : {false, true}) {
      for (int round = 0; round < 5; ++round) {
        auto client = std::make_unique<RawClient>(server.port());
        Held h = hold(server, *client);
        std::atomic<bool> stop = false;
        std::thread writer;
        if (phase != Phase::silent) {
          h.exchange->begin_stream(200, {}, "text/plain");
          h.exchange->write("x");
          EXPECT_TRUE(client->wait_for("x\r\n"));
        }
        if (phase == Phase::busy_writing)
          writer = std::thread([&] {
            while (!stop) h.exchange->write("token"), std::this_thread::sleep_for(1ms);
          });
        if (phase == Phase::pipelined) client->send(get("/hello"));
        if (phase == Phase::pipelined_full)
          for (int i = 0; i < 2000; ++i) client->send(get("/hello"));
        std::this_thread::sleep_for(5ms);
        const auto begin = std::chrono::steady_clock::now();
        by_reset ? client->reset() : client->close();
        const auto end = h.end->get(2s);
        const auto took = std::chrono::steady_clock::now() - begin;
        stop = true;
        if (writer.joinable()) writer.join();
        EXPECT_EQ(end, Exchange::End::peer_gone) << int(phase) << by_reset;
        EXPECT_LT(took, 250ms) << int(phase) << by_reset;
        h.exchange.reset();
      }
    }
  }
  EXPECT_TRUE(eventually([&] { return server.server->connections() == 0; }));
}

TEST(Stream, a_half_closed_client_is_gone_but_can_still_be_answered) {
  Server server;
  RawClient client = server.client();
  Held h = hold(server, client);
  client.finish_sending();
  EXPECT_EQ(h.end->get(), Exchange::End::peer_gone);
  EXPECT_TRUE(h.exchange->ended());
  h.exchange->send(text("goodbye"));
  EXPECT_EQ(client.response().body, "goodbye");
  EXPECT_TRUE(client.wait_closed(1000));
  EXPECT_EQ(h.end->count(), 1u);
}

TEST(Stream, callbacks_set_after_the_end_are_called) {
  Server server;
  RawClient client = server.client();
  Held h = hold(server, client);
  client.reset();
  EXPECT_EQ(h.end->get(), Exchange::End::peer_gone);
  Awaited<Exchange::End> again;
  h.exchange->on_closed([&](Exchange::End e) { again.put(e); });
  EXPECT_EQ(again.get(), Exchange::End::peer_gone);
}

TEST(Stream, a_slow_reader_is_told_of_and_resumes) {
  HttpLimits limits;
  limits.socket_send_bytes = 16 << 10;
  Server server({.limits = limits});
  RawClient client(server.port(), 4 << 10);
  Held h = hold(server, client);
  Awaited<size_t> drained;
  h.exchange->on_drained([&] { drained.put(h.exchange->buffered()); });
  h.exchange->begin_stream(200, {}, "text/plain");
  const std::string piece(4 << 10, 'x');
  size_t sent = 0;
  bool room = true;
  while (room && sent < (4u << 20))
    room = h.exchange->write(piece), sent += piece.size(), std::this_thread::sleep_for(100us);
  ASSERT_FALSE(room);
  EXPECT_GT(h.exchange->buffered(), limits.stream_bytes);
  EXPECT_LE(h.exchange->buffered(), limits.stream_bytes + piece.size());
  EXPECT_EQ(drained.count(), 0u);
  // Another client is not concerned.
  EXPECT_EQ(server.client().ask(get("/hello")).status, 200);
  std::thread reader([&] {
    const RawResponse r = client.response();
    EXPECT_TRUE(r.whole);
    EXPECT_EQ(r.body.size(), sent + 4);
  });
  const auto left = drained.get();
  ASSERT_TRUE(left);
  EXPECT_LT(*left, limits.stream_bytes / 2);
  EXPECT_TRUE(h.exchange->write("tail"));
  h.exchange->end();
  reader.join();
  EXPECT_EQ(h.end->get(), Exchange::End::done);
  EXPECT_EQ(h.exchange->buffered(), 0u);
}

TEST(Stream, a_reader_that_stays_slow_is_dropped) {
  HttpLimits limits;
  limits.socket_send_bytes = 16 << 10;
  limits.slow_reader = 100ms;
  Server server({.limits = limits});
  {  // takes nothing
    RawClient client(server.port(), 4 << 10);
    Held h = hold(server, client);
    h.exchange->begin_stream(200, {}, "text/plain");
    h.exchange->write(std::string(512 << 10, 'x'));
    EXPECT_EQ(h.end->get(), Exchange::End::too_slow);
  }
  {  // takes a little now and then
    RawClient client(server.port(), 4 << 10);
    Held h = hold(server, client);
    h.exchange->begin_stream(200, {}, "text/plain");
    h.exchange->write(std::string(4 << 20, 'x'));
    std::optional<Exchange::End> end;
    for (int i = 0; i < 400 && !end; ++i) client.take(2000), end = h.end->get(10ms);
    EXPECT_EQ(end, Exchange::End::too_slow);
  }
  {  // a response of one piece as well
    RawClient client(server.port(), 4 << 10);
    Held h = hold(server, client);
    h.exchange->send(text(std::string(4 << 20, 'x')));
    EXPECT_EQ(h.end->get(), Exchange::End::too_slow);
  }
}

TEST(Stream, an_owner_that_never_pauses_is_cut) {
  HttpLimits limits;
  limits.socket_send_bytes = 16 << 10;
  limits.stream_bytes_max = 1 << 20;
  Server server({.limits = limits});
  RawClient client(server.port(), 4 << 10);
  Held h = hold(server, client);
  h.exchange->begin_stream(200, {}, "text/plain");
  for (int i = 0; i < 64; ++i) h.exchange->write(std::string(64 << 10, 'x'));
  EXPECT_EQ(h.end->get(), Exchange::End::cut);
}

TEST(Stream, abort_does_not_wait_for_a_reader) {
  Server server({.limits = {.socket_send_bytes = 16 << 10}});
  RawClient client(server.port(), 4 << 10);
  Held h = hold(server, client);
  h.exchange->begin_stream(200, {}, "text/plain");
  h.exchange->write(std::string(200 << 10, 'x'));
  EXPECT_TRUE(client.wait_for("x"));
  h.exchange->write("y");
  std::this_thread::sleep_for(20ms);  // a write is stuck by now
  h.exchange->abort();
  EXPECT_EQ(h.end->get(1s), Exchange::End::cut);
}

TEST(Stream, an_exchange_outlives_its_server) {
  std::shared_ptr<Exchange> exchange;
  Awaited<Exchange::End> end;
  std::optional<RawClient> client;
  {
    Server server;
    client.emplace(server.port());
    client->send(get("/hold"));
    exchange = server.held.get().value();
    exchange->on_closed([&](Exchange::End e) { end.put(e); });
    exchange->begin_stream(200, {}, "text/plain");
  }
  EXPECT_EQ(end.get(0ms), Exchange::End::cut);
  EXPECT_TRUE(exchange->write("x"));
  exchange->end();
}

// Many writers, readers that come and go, two I/O threads: streams stay whole and apart.
TEST(Stream, many_at_once_stay_apart) {
  Server server({.threads = 2});
  std::atomic<int> whole = 0;
  server.on_other = [&](Request request, const std::shared_ptr<Exchange>& exchange) {
    std::thread([exchange, mark = request.head.query] {
      exchange->begin_stream(200, {}, "text/plain");
      for (int i = 0; i < 200; ++i) exchange->write(mark + ":" + std::to_string(i) + ";");
      exchange->end();
    }).detach();
  };
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      RawClient client = server.client();
      for (int round = 0; round < 5; ++round) {
        const std::string mark = std::to_string(c) + "-" + std::to_string(round);
        std::string want;
        for (int i = 0; i < 200; ++i) want += mark + ":" + std::to_string(i) + ";";
        const RawResponse r = client.ask(get("/stream?" + mark));
        if (r.whole && r.body == want) ++whole;
        RawClient gone = server.client();
        gone.send(get("/stream?" + mark));
        gone.wait_for("HTTP");
        c % 2 ? gone.reset() : gone.close();
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(whole, 40);
  EXPECT_TRUE(eventually([&] { return server.server->connections() == 0; }));
}

}  // namespace
}  // namespace hearth::net::test
