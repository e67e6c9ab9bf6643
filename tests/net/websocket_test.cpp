// WebSockets: frames made by hand, codes of their ends.
#include "net/websocket.h"

#include "base/error.h"
#include "net/fixture.h"

namespace hearth::net::test {
namespace {

enum Opcode : uint8_t { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

struct Frame {
  int opcode = -1;  // -1: the connection ended
  bool last = true;
  std::string payload;

  int close_code() const {
    if (opcode != kClose || payload.size() < 2) return -1;
    return 256 * static_cast<unsigned char>(payload[0]) + static_cast<unsigned char>(payload[1]);
  }
};

std::string frame_of(int opcode, std::string_view payload, bool last = true, bool masked = true) {
  std::string out(1, static_cast<char>((last ? 0x80 : 0) | opcode));
  const char mask_bit = masked ? '\x80' : '\0';
  if (payload.size() < 126) {
    out.push_back(static_cast<char>(mask_bit | static_cast<char>(payload.size())));
  } else if (payload.size() < 65536) {
    out.push_back(static_cast<char>(mask_bit | 126));
    out.push_back(static_cast<char>(payload.size() >> 8));
    out.push_back(static_cast<char>(payload.size()));
  } else {
    out.push_back(static_cast<char>(mask_bit | 127));
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(payload.size() >> shift));
  }
  if (!masked) return out.append(payload);
  const std::string mask = "\x12\x34\x56\x78";
  out += mask;
  for (size_t i = 0; i < payload.size(); ++i) out.push_back(static_cast<char>(payload[i] ^ mask[i % 4]));
  return out;
}

std::string close_of(int code, std::string_view reason = {}) {
  std::string payload = {static_cast<char>(code >> 8), static_cast<char>(code)};
  return frame_of(kClose, payload.append(reason));
}

Frame read_frame(RawClient& client) {
  const std::string head = client.take(2);
  if (head.size() < 2) return {};
  Frame out;
  out.opcode = head[0] & 15;
  out.last = (head[0] & 0x80) != 0;
  EXPECT_EQ(head[1] & 0x80, 0) << "a server must not mask";
  size_t n = head[1] & 127;
  if (n > 125) {
    const std::string extended = client.take(n == 126 ? 2 : 8);
    n = 0;
    for (const char c : extended) n = 256 * n + static_cast<unsigned char>(c);
  }
  out.payload = client.take(n);
  return out;
}

std::string upgrade(std::string_view target = "/ws", std::string_view headers = {}) {
  return get(target,
             "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                 std::string(headers));
}

// Echoes; keeps the socket for the test.
class EchoServer : public Server {
 public:
  explicit EchoServer(WebSocketOptions options = {}, ServerOptions server_options = {})
      : Server(std::move(server_options)) {
    on_other = [this, options](Request request, const std::shared_ptr<Exchange>& exchange) {
      if (!request.head.wants_websocket()) return exchange->send(text("upgrade", 426));
      const auto holder = std::make_shared<std::shared_ptr<WebSocket>>();
      auto socket = accept_websocket(*exchange, request.head, options,
                                     {.on_message =
                                          [holder, this](std::string message, bool is_text) {
                                            messages.put(std::to_string(is_text) + message);
                                            if (*holder) (*holder)->send(std::move(message));
                                          },
                                      .on_closed =
                                          [holder, this](int code, std::string_view) {
                                            holder->reset();
                                            closed.put(code);
                                          },
                                      .on_drained = [this] { drained.put(true); },
                                      .on_limit = [this](WebSocketLimit limit) { limits.put(limit); }});
      *holder = socket;
      sockets.put(std::move(socket));
    };
  }

  ~EchoServer() { server.reset(); }  // before what its callbacks use

  RawClient open() {
    RawClient out = client();
    const RawResponse r = out.ask(upgrade());
    EXPECT_EQ(r.status, 101);
    // RFC 6455 section 1.3
    EXPECT_NE(r.head.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), r.head.npos) << r.head;
    return out;
  }

  Awaited<std::shared_ptr<WebSocket>> sockets;
  Awaited<std::string> messages;
  Awaited<int> closed;
  Awaited<bool> drained;
  Awaited<WebSocketLimit> limits;
};

TEST(WebSocket, echoes_and_closes) {
  EchoServer server;
  RawClient client = server.open();
  for (const size_t n : {0, 1, 125, 126, 65535, 65536}) {
    client.send(frame_of(kText, std::string(n, 'a')));
    const Frame f = read_frame(client);
    EXPECT_EQ(f.opcode, kText);
    EXPECT_TRUE(f.last);
    EXPECT_EQ(f.payload, std::string(n, 'a'));
  }
  client.send(close_of(1000, "bye"));
  EXPECT_EQ(read_frame(client).close_code(), 1000);
  EXPECT_TRUE(client.wait_closed(1000));
  EXPECT_EQ(server.closed.get(1s), 1000);  // though the client has not closed its socket yet
  client.close();
  EXPECT_TRUE(eventually([&] { return server.server->connections() == 0; }));
  EXPECT_EQ(server.closed.count(), 1u);
}

TEST(WebSocket, fragments_and_pings) {
  EchoServer server;
  RawClient client = server.open();
  client.send(frame_of(kText, "ab", false) + frame_of(kPing, "p") + frame_of(kContinuation, "cd"));
  const Frame pong = read_frame(client);
  EXPECT_EQ(pong.opcode, kPong);
  EXPECT_EQ(pong.payload, "p");
  EXPECT_EQ(read_frame(client).payload, "abcd");
  client.send(frame_of(kBinary, "\xff"));
  EXPECT_EQ(server.messages.get(), "1abcd");
  EXPECT_EQ(server.messages.get(), "0\xff");
}

TEST(WebSocket, ten_thousand_pings) {
  EchoServer server;
  RawClient client = server.open();
  std::thread sender([&] {
    for (int i = 0; i < 10'000; ++i) client.send(frame_of(kPing, "x"));
    client.send(frame_of(kText, "end"));
  });
  for (Frame f = read_frame(client); f.opcode == kPong; f = read_frame(client)) {
  }
  sender.join();
  EXPECT_EQ(server.messages.get(), "1end");
}

TEST(WebSocket, bad_frames_end_with_their_code) {
  EchoServer server({.message_bytes_max = 1000});
  for (const auto& [name, bytes, code] : std::vector<std::tuple<std::string, std::string, int>>{
           {"not masked", frame_of(kText, "x", true, false), 1002},
           {"too large", frame_of(kText, std::string(1001, 'x')), 1009},
           {"too large in fragments",
            frame_of(kText, std::string(600, 'x'), false) + frame_of(kContinuation, std::string(600, 'x')), 1009},
           {"not UTF-8", frame_of(kText, "\xff\xfe"), 1007},
           {"UTF-8 cut at the end", frame_of(kText, "\xe2\x82"), 1007},
           {"reserved bit", std::string("\xC1\x80\0\0\0\0", 6), 1002},
           {"unknown opcode", frame_of(3, "x"), 1002},
           {"continuation of nothing", frame_of(kContinuation, "x"), 1002},
           {"text within text", frame_of(kText, "a", false) + frame_of(kText, "b"), 1002},
           {"long ping", frame_of(kPing, std::string(126, 'x')), 1002},
           {"ping in fragments", frame_of(kPing, "x", false), 1002},
           {"close with one byte", frame_of(kClose, "x"), 1002},
           {"close with a reserved code", close_of(1005), 1002}}) {
    RawClient client = server.open();
    client.send(bytes);
    EXPECT_EQ(read_frame(client).close_code(), code) << name;
    EXPECT_TRUE(client.wait_closed(1000)) << name;
    EXPECT_EQ(server.closed.get(1s), code) << name;  // though the client has not closed its socket yet
  }
  EXPECT_EQ(server.messages.count(), 0u);
}

TEST(WebSocket, message_limit_to_the_byte) {
  EchoServer server({.message_bytes_max = 1000});
  for (const size_t n : {999, 1000}) {
    RawClient client = server.open();
    client.send(frame_of(kText, std::string(n, 'x')));
    EXPECT_EQ(read_frame(client).payload.size(), n);
  }
}

TEST(WebSocket, the_owner_names_the_code_of_a_message_that_is_too_large) {
  EchoServer server({.message_bytes_max = 1000, .too_big_code = 4413});
  const std::string half(600, 'x');
  for (const std::string& bytes :
       {frame_of(kText, std::string(1001, 'x')), frame_of(kText, half, false) + frame_of(kContinuation, half),
        frame_of(kText, std::string(1001, 'x')) + frame_of(kText, "after it")}) {
    RawClient client = server.open();
    client.send(bytes);
    EXPECT_EQ(read_frame(client).close_code(), 4413);
    client.send(close_of(4413));
    EXPECT_TRUE(client.wait_closed(1000));
    EXPECT_EQ(server.closed.get(1s), 4413);
  }
  EXPECT_EQ(server.messages.count(), 0u);
  RawClient client = server.open();
  client.send(frame_of(kText, std::string(1000, 'x')));
  EXPECT_EQ(read_frame(client).payload.size(), 1000u);
}

// Its first bytes say that it is too large: nothing more of it is waited for.
TEST(WebSocket, a_frame_that_is_too_large_is_refused_by_its_header) {
  for (const int code : {1009, 4413}) {
    EchoServer server({.message_bytes_max = 1000, .too_big_code = code});
    RawClient client = server.open();
    client.send(frame_of(kText, std::string(1001, 'x')).substr(0, 8));
    EXPECT_EQ(read_frame(client).close_code(), code);
    EXPECT_TRUE(client.wait_closed(1000));
    EXPECT_EQ(server.closed.get(1s), code);
    EXPECT_EQ(server.limits.get(1s), WebSocketLimit::message);
  }
}

// What the server has for a client is bounded by not listening to it, not by cutting it: all is answered in the end.
TEST(WebSocket, who_sends_and_does_not_read_is_not_heard_for_a_while) {
  constexpr size_t kMessage = 1'000'000, kMessages = 9;
  EchoServer server({.send_bytes_max = 4 << 20});
  RawClient client = server.open();
  const auto socket = server.sockets.get().value();
  std::thread sender([&] {
    for (size_t i = 0; i < kMessages; ++i)
      client.send(frame_of(kText, std::string(kMessage, static_cast<char>('a' + i))));
  });
  // More than half of what may wait does wait: the rest stays in the system's buffers.
  EXPECT_TRUE(eventually([&] { return socket->buffered() > (2 << 20); }));
  std::this_thread::sleep_for(50ms);
  EXPECT_LE(socket->buffered(), 4u << 20);
  EXPECT_LT(server.messages.count(), kMessages);
  for (size_t i = 0; i < kMessages; ++i) {
    const Frame f = read_frame(client);
    ASSERT_EQ(f.opcode, kText) << i;
    EXPECT_EQ(f.payload, std::string(kMessage, static_cast<char>('a' + i)));
  }
  sender.join();
  EXPECT_EQ(server.closed.count(), 0u);
}

// As long as nobody knows who it is: short messages, and it is the first to make room.
TEST(WebSocket, strangers_have_little_room) {
  EchoServer server({.message_bytes_max = 1000, .stranger_bytes_max = 100}, {.limits = {.connections_max = 2}});
  RawClient first = server.open();
  first.send(frame_of(kText, std::string(100, 'x')));
  EXPECT_EQ(read_frame(first).payload.size(), 100u);
  const auto known = server.sockets.get().value();
  RawClient second = server.open();
  second.send(frame_of(kText, std::string(101, 'x')).substr(0, 8));
  EXPECT_EQ(read_frame(second).close_code(), 1009);
  second.close();
  EXPECT_EQ(server.closed.get(1s), 1009);
  ASSERT_TRUE(eventually([&] { return server.server->connections() == 1; }));
  known->welcome();
  first.send(frame_of(kText, std::string(1000, 'x')));
  EXPECT_EQ(read_frame(first).payload.size(), 1000u);
  RawClient third = server.open();  // who is known stays, and a stranger goes
  RawClient fourth = server.open();
  EXPECT_TRUE(third.wait_closed(1000));
  EXPECT_EQ(server.closed.get(1s), 1006);
  first.send(frame_of(kText, "still here"));
  EXPECT_EQ(read_frame(first).payload, "still here");
}

TEST(WebSocket, fragments_of_nothing_end) {
  EchoServer server;
  RawClient client = server.open();
  std::thread sender([&] {
    std::string bomb = frame_of(kText, "", false);
    for (int i = 0; i < 20'000; ++i) bomb += frame_of(kContinuation, "", false);
    client.send(bomb);
  });
  EXPECT_EQ(read_frame(client).close_code(), 1009);
  sender.join();
  EXPECT_EQ(server.closed.get(1s), 1009);
}

TEST(WebSocket, split_UTF_8_and_split_frames) {
  EchoServer server;
  RawClient client = server.open();
  client.send(frame_of(kText, "\xe2", false) + frame_of(kContinuation, "\x82\xac"));
  EXPECT_EQ(read_frame(client).payload, "€");
  for (const char c : frame_of(kText, "slow")) client.send({&c, 1});
  EXPECT_EQ(read_frame(client).payload, "slow");
}

TEST(WebSocket, the_owner_closes) {
  EchoServer server;
  RawClient client = server.open();
  const auto socket = server.sockets.get().value();
  EXPECT_THROW(socket->close(1005), Error);
  EXPECT_THROW(socket->close(999), Error);
  EXPECT_THROW(socket->close(1014), Error);
  EXPECT_THROW(socket->close(1000, std::string(124, 'x')), Error);
  socket->send("last words");
  socket->close(4001, "revoked");
  socket->send("not sent");
  EXPECT_EQ(read_frame(client).payload, "last words");
  const Frame f = read_frame(client);
  EXPECT_EQ(f.close_code(), 4001);
  EXPECT_EQ(f.payload.substr(2), "revoked");
  client.send(close_of(4001));
  EXPECT_EQ(server.closed.get(1s), 4001);
  EXPECT_TRUE(client.wait_closed(1000));
}

TEST(WebSocket, vanished_clients_are_seen) {
  EchoServer server;
  for (const bool by_reset : {false, true}) {
    RawClient client = server.open();
    by_reset ? client.reset() : client.close();
    EXPECT_EQ(server.closed.get(250ms), 1006);
  }
  EXPECT_TRUE(eventually([&] { return server.server->connections() == 0; }));
}

TEST(WebSocket, pings_and_idle_end) {
  EchoServer server({.ping = 25ms, .idle = 500ms});
  RawClient silent = server.open();
  EXPECT_EQ(read_frame(silent).opcode, kPing);
  EXPECT_EQ(server.closed.get(2s), 1006);  // it never sent a pong
  EXPECT_EQ(server.limits.get(1s), WebSocketLimit::idle);
  RawClient alive = server.open();
  for (int i = 0; i < 40; ++i) {
    const Frame f = read_frame(alive);
    ASSERT_EQ(f.opcode, kPing) << i;
    alive.send(frame_of(kPong, f.payload));
  }
  EXPECT_EQ(server.closed.count(), 1u);
}

TEST(WebSocket, slow_readers) {
  EchoServer server({.ping = 20ms, .slow_reader = 150ms}, {.limits = {.socket_send_bytes = 16 << 10}});
  RawClient client(server.port(), 4 << 10);
  EXPECT_EQ(client.ask(upgrade()).status, 101);
  const auto socket = server.sockets.get().value();
  const std::string message(16 << 10, 'x');
  size_t sent = 0;
  while (socket->send(message) && sent < 1000) ++sent;
  EXPECT_GT(socket->buffered(), 256u << 10);
  for (size_t i = 0; i < sent + 1;) i += read_frame(client).opcode == kText;
  EXPECT_EQ(server.drained.get(), true);
  while (socket->send(message)) {
  }
  EXPECT_EQ(server.closed.get(2s), 1006);
  EXPECT_EQ(server.limits.get(1s), WebSocketLimit::slow_reader);
}

TEST(WebSocket, abort_does_not_wait_for_a_reader) {
  EchoServer server({}, {.limits = {.socket_send_bytes = 16 << 10}});
  RawClient client(server.port(), 4 << 10);
  EXPECT_EQ(client.ask(upgrade()).status, 101);
  const auto socket = server.sockets.get().value();
  socket->send(std::string(200 << 10, 'x'));
  EXPECT_TRUE(client.wait_for("x"));
  std::this_thread::sleep_for(20ms);
  socket->abort();
  EXPECT_EQ(server.closed.get(1s), 1006);
}

TEST(WebSocket, the_owner_decides) {
  EchoServer server;
  RawClient client = server.client();
  EXPECT_EQ(client.ask(upgrade("/hello")).body, "hello");  // an ordinary answer
  EXPECT_EQ(client.ask(get("/ws")).status, 426);
  EXPECT_EQ(client.ask(upgrade("/ws")).status, 101);
}

TEST(WebSocket, handshakes_that_are_none) {
  EchoServer server;
  for (const char* headers :
       {"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"}) {
    RawClient client = server.client();
    const int status = client.ask(get("/ws", headers)).status;
    EXPECT_TRUE(status == 400 || status == 426) << status << " " << headers;
    EXPECT_EQ(server.closed.get(), 1006);
  }
}

TEST(WebSocket, subprotocol_and_headers) {
  EchoServer server({.subprotocol = "hearth", .headers = {{"x-request-id", "5"}}});
  RawClient client = server.client();
  const RawResponse r = client.ask(upgrade("/ws", "Sec-WebSocket-Protocol: hearth, other\r\n"));
  EXPECT_NE(r.head.find("Sec-WebSocket-Protocol: hearth\r\n"), r.head.npos) << r.head;
  EXPECT_NE(r.head.find("x-request-id: 5\r\n"), r.head.npos) << r.head;
  EXPECT_EQ(r.head.find("Beast"), r.head.npos) << r.head;
}

TEST(WebSocket, drain_says_goodbye) {
  EchoServer server;
  RawClient client = server.open();
  client.send(frame_of(kText, "x"));
  EXPECT_EQ(read_frame(client).payload, "x");
  std::thread answerer([&] {
    EXPECT_EQ(read_frame(client).close_code(), 1001);
    client.send(close_of(1001));
  });
  EXPECT_EQ(server.server->drain(5s), 0u);
  answerer.join();
  EXPECT_EQ(server.closed.get(), 1001);
}

TEST(WebSocket, outlives_its_server) {
  std::shared_ptr<WebSocket> socket;
  {
    EchoServer server;
    RawClient client = server.open();
    socket = server.sockets.get().value();
  }
  EXPECT_TRUE(socket->ended());
  EXPECT_TRUE(socket->send("x"));
  socket->close(1000);
}

TEST(WebSocket, open_and_vanish_leaves_nothing) {
  EchoServer server;
  server.open().close();
  ASSERT_TRUE(eventually([&] { return server.server->connections() == 0; }));
  const size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    RawClient client = server.open();
    if (i % 2) client.send(frame_of(kText, "x"));
    i % 3 ? client.close() : client.reset();
  }
  EXPECT_TRUE(eventually([&] { return server.server->connections() == 0; }));
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace hearth::net::test
