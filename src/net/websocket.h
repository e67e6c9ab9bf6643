// A WebSocket (RFC 6455), made out of an exchange whose request asked for one (RequestHead::wants_websocket). Nothing
// is compressed. Nothing of a client is heard while half of send_bytes_max waits for it.
//
//   if (request.head.wants_websocket() && allowed(request.head))
//     socket = accept_websocket(*exchange, request.head, {}, {.on_message = ..., .on_closed = ...});
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/exchange.h"
#include "net/http.h"

namespace hearth::net {

struct WebSocketState;

struct WebSocketOptions {
  size_t message_bytes_max = 1 << 20;  // a larger message ends it with too_big_code, before its bytes are read
  int too_big_code = 1009;
  // Above 0: it is not known yet who this is. Until welcome() a message may have so many bytes, and the connection is
  // among the first to make room for others.
  size_t stranger_bytes_max = 0;
  Milliseconds ping{20'000};       // between two pings
  Milliseconds idle{60'000};       // nothing came, no pong either: it ends (on_closed with 1006)
  Milliseconds handshake{10'000};  // for the opening, and for the client's answer to a close
  size_t send_bytes = 256 << 10;   // as HttpLimits::stream_bytes, stream_bytes_max, slow_reader
  size_t send_bytes_max = 16 << 20;
  Milliseconds slow_reader{60'000};
  std::string subprotocol{};      // chosen out of the client's Sec-WebSocket-Protocol; empty: none
  std::vector<Header> headers{};  // of the 101 answer
};

// Those that a client can run into.
enum class WebSocketLimit : uint8_t { message, idle, slow_reader };

// On the I/O thread, one at a time, with no lock held; none may block. Let go after on_closed, so they may hold the
// socket.
struct WebSocketHandlers {
  std::function<void(std::string message, bool is_text)> on_message{};  // text is valid UTF-8
  // Once. The code of the close frame, ours or the client's; 1006: it ended without one. After a close of ours, when
  // the client has answered it or WebSocketOptions::handshake has passed; messages are not heard any more.
  std::function<void(int code, std::string_view reason)> on_closed{};
  std::function<void()> on_drained{};              // as Exchange::on_drained
  std::function<void(WebSocketLimit)> on_limit{};  // it ends for that
};

// Any thread; nothing blocks. Destroying the last handle closes it with 1001.
class WebSocket {
 public:
  explicit WebSocket(std::shared_ptr<WebSocketState> state);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // One text message, valid UTF-8. False: pause until on_drained. After the end it is dropped.
  bool send(std::string text);
  // After what was sent before. Error{invalid_argument} for a code outside 1000..1013 and 3000..4999, or one that may
  // not be sent (1004 to 1006), or a reason over 123 bytes.
  void close(int code, std::string_view reason = {});
  void abort();    // now, without a close frame
  void welcome();  // it is known now who this is

  size_t buffered() const;
  bool ended() const;

 private:
  std::shared_ptr<WebSocketState> state_;
};

// Why a request does not become a WebSocket: 400, or 426 for another version.
struct WebSocketRefusal {
  int status;
  std::string_view sentence;
};
std::optional<WebSocketRefusal> refuse_websocket(const RequestHead& head);

// Answers the exchange with 101 and the handshake, in the background. A request that asks wrongly is answered as
// refuse_websocket says, and on_closed follows. Error{invalid_argument} if the exchange has an answer.
std::shared_ptr<WebSocket> accept_websocket(Exchange& exchange, const RequestHead& head, WebSocketOptions options,
                                            WebSocketHandlers handlers);

}  // namespace hearth::net
