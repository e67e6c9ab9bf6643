#include "net/websocket.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "net/exchange_state.h"
#include "net/websocket_connection.inl"

namespace hearth::net {

namespace {

using Lock = std::unique_lock<std::mutex>;
using std::chrono::steady_clock;
constexpr int kGoingAway = 1001;

}  // namespace

void WebSocketState::wake_locked() {
  if (port != nullptr) port->wake();
}

void WebSocketState::closed(int code, std::string_view reason) {
  WebSocketHandlers let_go;  // outside the lock
  {
    const Lock lock(mutex);
    port = nullptr;
    if (ended) return;
    ended = true;
    let_go = std::exchange(handlers, WebSocketHandlers{});
  }
  call(let_go.on_closed, code, reason);
}

namespace {

class WsUpgrade final : public Upgrade {
 public:
  WsUpgrade(std::shared_ptr<WebSocketState> state, std::string head)
      : state_(std::move(state)), head_(std::move(head)) {}
  ~WsUpgrade() override {
    if (state_) state_->closed(kCloseAbnormal, "");
  }

  void take(Core& core, Socket socket) override {
    std::make_shared<WsConnection>(core, std::move(socket), std::move(state_), std::move(head_))->start();
  }

 private:
  std::shared_ptr<WebSocketState> state_;
  std::string head_;
};

std::string switching_head(const RequestHead& head, const WebSocketOptions& options) {
  std::string out = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
  const auto put = [&out](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  put("Sec-WebSocket-Accept", accept_of(head.header("sec-websocket-key").value_or("")));
  if (!options.subprotocol.empty()) put("Sec-WebSocket-Protocol", options.subprotocol);
  for (const auto& [name, value] : options.headers) put(name, value);
  return out + "\r\n";
}

}  // namespace

WebSocket::WebSocket(std::shared_ptr<WebSocketState> state) : state_(std::move(state)) {}

WebSocket::~WebSocket() {
  const Lock lock(state_->mutex);
  if (!state_->close) state_->close = {kGoingAway, ""};
  state_->wake_locked();
}

bool WebSocket::send(std::string text) {
  const Lock lock(state_->mutex);
  WebSocketState& state = *state_;
  if (state.ended || state.close || state.aborts) return true;
  if (text.size() > state.options.send_bytes_max - std::min(state.buffered, state.options.send_bytes_max)) {
    state.aborts = true;
    state.wake_locked();
    return false;
  }
  state.buffered += text.size();
  state.queue.push_back(std::move(text));
  if (state.buffered > state.options.send_bytes && !state.over) state.over = steady_clock::now();
  state.wake_locked();
  return !state.over;
}

void WebSocket::close(int code, std::string_view reason) {
  if (!is_close_code(code)) fail(ErrorKind::invalid_argument, "{} is no code to close a WebSocket with", code);
  if (reason.size() > 123)
    fail(ErrorKind::invalid_argument, "the reason of a close has {} bytes, at most 123 fit", reason.size());
  const Lock lock(state_->mutex);
  if (!state_->close) state_->close = {code, std::string(reason)};
  state_->wake_locked();
}

void WebSocket::abort() {
  const Lock lock(state_->mutex);
  state_->aborts = true;
  state_->wake_locked();
}

void WebSocket::welcome() {
  const Lock lock(state_->mutex);
  state_->is_stranger = false;
}

size_t WebSocket::buffered() const {
  const Lock lock(state_->mutex);
  return state_->buffered;
}

bool WebSocket::ended() const {
  const Lock lock(state_->mutex);
  return state_->ended;
}

std::optional<WebSocketRefusal> refuse_websocket(const RequestHead& head) {
  if (!head.wants_websocket() || !lists_token(head.header("connection").value_or(""), "upgrade"))
    return WebSocketRefusal{400, "a WebSocket is asked for by GET with Connection: Upgrade and Upgrade: websocket"};
  if (head.header_count("sec-websocket-version") != 1 || head.header("sec-websocket-version") != "13")
    return WebSocketRefusal{426, "the only Sec-WebSocket-Version understood is 13"};
  if (head.header_count("sec-websocket-key") != 1 || accept_of(*head.header("sec-websocket-key")).empty())
    return WebSocketRefusal{400, "Sec-WebSocket-Key must be 16 bytes in base64"};
  return std::nullopt;
}

std::shared_ptr<WebSocket> accept_websocket(Exchange& exchange, const RequestHead& head, WebSocketOptions options,
                                            WebSocketHandlers handlers) {
  check_response(200, options.headers, options.subprotocol);
  auto state = std::make_shared<WebSocketState>();
  state->options = std::move(options);
  state->handlers = std::move(handlers);
  state->is_stranger = state->options.stranger_bytes_max > 0;
  auto out = std::make_shared<WebSocket>(state);
  if (const auto refusal = refuse_websocket(head)) {
    Response response{.status = refusal->status, .body = std::string(refusal->sentence) + "\n"};
    response.content_type = "text/plain; charset=utf-8";
    if (refusal->status == 426) response.headers = {{"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}};
    exchange.send(std::move(response));
    state->closed(kCloseAbnormal, "");
    return out;
  }
  auto upgrade = std::make_shared<WsUpgrade>(state, switching_head(head, state->options));
  ExchangeState& answered = *exchange.state();
  const Lock lock(answered.mutex);
  if (answered.phase != ExchangeState::Phase::waits)
    fail(ErrorKind::invalid_argument, "the request has its answer already, it cannot become a WebSocket");
  answered.phase = ExchangeState::Phase::answered;
  if (answered.port != nullptr) answered.next.upgrade = std::move(upgrade);
  answered.wake_locked();
  return out;
}

}  // namespace hearth::net
