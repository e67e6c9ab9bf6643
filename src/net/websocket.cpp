#include "net/websocket.h"

#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "net/exchange_state.h"
#include "net/io.inl"

namespace hearth::net {

namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;

class WsConnection;

// Where the owner (any thread) and the connection (its strand) meet.
struct WebSocketState {
  struct Close {
    int code;
    std::string reason;
  };

  void wake_locked();
  void closed(int code, std::string_view reason);  // the first call counts

  std::mutex mutex;
  WsConnection* port = nullptr;  // absent before the handshake and after the end
  bool ended = false, aborts = false;
  std::deque<std::string> queue;  // the front one may be on its way
  size_t buffered = 0;
  std::optional<std::chrono::steady_clock::time_point> over;
  std::optional<Close> close;
  WebSocketOptions options;
  WebSocketHandlers handlers;
};

// Beast's own teardown waits for the client's end of the connection before anything is reported: see linger() instead.
struct WsSocket : Socket {
  explicit WsSocket(Socket socket) : Socket(std::move(socket)) {}
};

void teardown(beast::role_type, WsSocket& socket, error_code& ec) { socket.shutdown(Socket::shutdown_send, ec); }

template <class Handler>
void async_teardown(beast::role_type, WsSocket& socket, Handler&& handler) {
  error_code ec;
  socket.shutdown(Socket::shutdown_send, ec);
  asio::post(socket.get_executor(), beast::bind_front_handler(std::forward<Handler>(handler), ec));
}

namespace {

using Lock = std::unique_lock<std::mutex>;
using std::chrono::steady_clock;
constexpr int kAbnormal = 1006, kGoingAway = 1001, kTooBig = 1009;
constexpr Milliseconds kLinger{2'000}, kLingerInDrain{200};

template <class Function, class... Args>
void call(const Function& function, Args&&... args) noexcept {
  if (!function) return;
  try {
    function(std::forward<Args>(args)...);
  } catch (const std::exception& e) {
    log::error("net", "a callback of a WebSocket failed: {}", e.what());
  }
}

// The close frame that Beast sent for an error of the client.
int code_of(error_code ec) {
  if (ec == websocket::error::message_too_big || ec == websocket::error::buffer_overflow) return kTooBig;
  if (ec == websocket::error::bad_frame_payload) return 1007;
  if (ec == websocket::condition::protocol_violation) return 1002;
  return kAbnormal;
}

}  // namespace

class WsConnection final : public Connection {
 public:
  using Request = beast::http::request<beast::http::empty_body>;

  WsConnection(Core& core, Socket socket, std::shared_ptr<WebSocketState> state, Request request)
      : Connection(core),
        strand_(socket.get_executor()),
        ws_(std::move(socket)),
        ping_(strand_),
        state_(std::move(state)),
        request_(std::move(request)) {
    const Lock lock(state_->mutex);
    state_->port = this;
  }

  ~WsConnection() override { finish(kAbnormal, ""); }

  void start() {
    const WebSocketOptions& options = state_->options;
    ws_.set_option(websocket::stream_base::timeout{options.handshake, websocket::stream_base::none(), false});
    ws_.control_callback([this](websocket::frame_type, beast::string_view) { last_heard_ = steady_clock::now(); });
    ws_.set_option(websocket::stream_base::decorator([this](websocket::response_type& response) {
      for (const auto& [name, value] : state_->options.headers) response.insert(name, value);
      if (!state_->options.subprotocol.empty())
        response.set(beast::http::field::sec_websocket_protocol, state_->options.subprotocol);
      response.set(beast::http::field::server, "hearth");  // else Beast puts its name and version there
    }));
    ws_.read_message_max(own_too_big() ? 0 : options.message_bytes_max);  // Beast's code is 1009
    ws_.auto_fragment(false);
    ws_.text(true);
    ws_.async_accept(request_, [self = self()](error_code ec) { self->on_accepted(ec); });
  }

  void wake() {  // with the state's mutex held
    if (auto held = weak_from_this().lock())
      asio::post(strand_, [self = std::static_pointer_cast<WsConnection>(held)] { self->flush(); });
  }

  void cut() override {
    asio::post(strand_, [self = self()] { self->stop(); });
  }
  void drain() override {
    const Lock lock(state_->mutex);
    if (!state_->close) state_->close = {kGoingAway, "the server stops"};
    state_->wake_locked();
  }
  void evict() override {}

 private:
  std::shared_ptr<WsConnection> self() { return std::static_pointer_cast<WsConnection>(shared_from_this()); }

  void on_accepted(error_code ec) {
    if (ec) return stop();
    open_ = true;
    if (core_.draining) drain();
    read();
    ping_later();
    flush();
  }

  void read() {
    ws_.async_read_some(buffer_, 0, [self = self()](error_code ec, size_t) { self->on_read(ec); });
  }

  void on_read(error_code ec) {
    if (ec) {
      const int code = ec == websocket::error::closed ? int{ws_.reason().code} : code_of(ec);
      finish(code, std::string_view(ws_.reason().reason.data(), ws_.reason().reason.size()));
      return code == kAbnormal ? stop() : linger();
    }
    last_heard_ = steady_clock::now();
    if (own_too_big() && buffer_.size() > state_->options.message_bytes_max) refuse_message();
    if (deaf_) buffer_.consume(buffer_.size());
    if (!ws_.is_message_done()) return read();
    std::string message = beast::buffers_to_string(buffer_.data());
    buffer_.consume(buffer_.size());
    if (!closing_ && !deaf_) call(state_->handlers.on_message, std::move(message), ws_.got_text());
    read();
  }

  bool own_too_big() const { return state_->options.too_big_code != kTooBig; }

  void refuse_message() {
    deaf_ = true;
    const Lock lock(state_->mutex);
    if (!state_->close) state_->close = {state_->options.too_big_code, "the message is too large"};
    state_->wake_locked();
  }

  void ping_later() {
    ping_.expires_after(std::min(state_->options.ping, state_->options.idle / 4));
    ping_.async_wait([self = self()](error_code ec) {
      if (ec || !self->open_) return;
      const auto now = steady_clock::now();
      if (now - self->last_heard_ > self->state_->options.idle || self->is_stuck()) return self->stop();
      if (!self->pinging_ && now - self->last_ping_ >= self->state_->options.ping) {
        self->pinging_ = true;
        self->last_ping_ = now;
        self->ws_.async_ping({}, [self](error_code) { self->pinging_ = false; });
      }
      self->ping_later();
    });
  }

  bool aborts() {
    const Lock lock(state_->mutex);
    return state_->aborts;
  }

  bool is_stuck() {
    const Lock lock(state_->mutex);
    return state_->over && steady_clock::now() - *state_->over > state_->options.slow_reader;
  }

  void flush() {
    if (!open_) return;
    if (aborts()) return stop();
    if (writing_ || closing_) return;
    std::optional<WebSocketState::Close> close;
    {
      const Lock lock(state_->mutex);
      if (!state_->queue.empty()) {
        writing_ = true;
        // Only this connection takes from the queue, and others' additions do not move what is in a deque.
        ws_.async_write(asio::buffer(state_->queue.front()),
                        [self = self()](error_code ec, size_t) { self->on_written(ec); });
        return;
      }
      if (!state_->close) return;
      close = state_->close;
    }
    closing_ = true;
    websocket::close_reason reason(static_cast<websocket::close_code>(close->code));
    reason.reason.assign(close->reason.data(), close->reason.size());
    ws_.async_close(reason, [self = self(), close](error_code) {
      self->finish(close->code, close->reason);
      self->linger();
    });
  }

  void on_written(error_code ec) {
    writing_ = false;
    if (ec) return stop();
    std::function<void()> drained;
    {
      const Lock lock(state_->mutex);
      state_->buffered -= state_->queue.front().size();
      state_->queue.pop_front();
      if (state_->over && state_->buffered < state_->options.send_bytes / 2) {
        state_->over.reset();
        drained = state_->handlers.on_drained;
      }
    }
    call(drained);
    flush();
  }

  void stop() {
    open_ = false;
    ping_.cancel();
    error_code ignored;
    beast::get_lowest_layer(ws_).close(ignored);
    finish(kAbnormal, "");
  }

  // The close frame is written: what still comes is dropped, so that the client can read it.
  void linger() {
    if (std::exchange(lingers_, true)) return;
    open_ = false;
    ping_.expires_after(core_.draining ? kLingerInDrain : kLinger);
    ping_.async_wait([self = self()](error_code ec) {
      if (!ec) self->stop();
    });
    discard();
  }

  void discard() {
    ws_.next_layer().async_read_some(asio::buffer(rest_),
                                     [self = self()](error_code ec, size_t) { ec ? self->stop() : self->discard(); });
  }

  void finish(int code, std::string_view reason) { state_->closed(code, reason); }

  const Strand strand_;
  websocket::stream<WsSocket, false> ws_;
  beast::flat_buffer buffer_;
  Timer ping_;
  std::shared_ptr<WebSocketState> state_;
  Request request_;
  std::array<char, 4096> rest_;
  std::chrono::steady_clock::time_point last_heard_ = std::chrono::steady_clock::now(), last_ping_ = last_heard_;
  bool lingers_ = false;
  bool open_ = false, writing_ = false, pinging_ = false, closing_ = false;
  bool deaf_ = false;  // a message was too large: nothing more is heard
};

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
  WsUpgrade(std::shared_ptr<WebSocketState> state, const RequestHead& head) : state_(std::move(state)) {
    request_.version(11);
    request_.method(beast::http::verb::get);
    request_.target(head.target);
    for (const auto& [name, value] : head.headers) request_.insert(name, value);
  }
  ~WsUpgrade() override {
    if (state_) state_->closed(kAbnormal, "");
  }

  void take(Core& core, Socket socket) override {
    std::make_shared<WsConnection>(core, std::move(socket), std::move(state_), std::move(request_))->start();
  }

 private:
  std::shared_ptr<WebSocketState> state_;
  WsConnection::Request request_;
};

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
  const bool sendable =
      (code >= 1000 && code <= 1013 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);
  if (!sendable) fail(ErrorKind::invalid_argument, "{} is no code to close a WebSocket with", code);
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

size_t WebSocket::buffered() const {
  const Lock lock(state_->mutex);
  return state_->buffered;
}

bool WebSocket::ended() const {
  const Lock lock(state_->mutex);
  return state_->ended;
}

std::shared_ptr<WebSocket> accept_websocket(Exchange& exchange, const RequestHead& head, WebSocketOptions options,
                                            WebSocketHandlers handlers) {
  check_response(200, options.headers, options.subprotocol);
  auto state = std::make_shared<WebSocketState>();
  state->options = std::move(options);
  state->handlers = std::move(handlers);
  auto out = std::make_shared<WebSocket>(state);
  auto upgrade = std::make_shared<WsUpgrade>(state, head);
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
