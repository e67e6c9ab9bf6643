// Private to websocket.cpp: one client's WebSocket, from the answer to its handshake to its end. Everything runs on the
// connection's strand; a read stays pending but while half of what may wait for the client does wait.
#pragma once
#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "net/io.inl"
#include "net/websocket.h"
#include "net/websocket_frame.h"

namespace hearth::net {

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
  bool ended = false, aborts = false, is_stranger = false;
  std::deque<std::string> queue;  // the front one may be on its way
  size_t buffered = 0;
  std::optional<std::chrono::steady_clock::time_point> over;
  std::optional<Close> close;
  WebSocketOptions options;
  WebSocketHandlers handlers;
};

template <class Function, class... Args>
void call(const Function& function, Args&&... args) noexcept {
  if (!function) return;
  try {
    function(std::forward<Args>(args)...);
  } catch (const std::exception& e) {
    log::error("net", "a callback of a WebSocket failed: {}", e.what());
  }
}

class WsConnection final : public Connection {
  using Lock = std::unique_lock<std::mutex>;
  using steady_clock = std::chrono::steady_clock;
  static constexpr int kNormal = 1000, kGoingAway = 1001;
  static constexpr size_t kPongBytesMax = 16 << 10;
  static constexpr Milliseconds kLinger{2'000}, kLingerInDrain{200};

 public:
  WsConnection(Core& core, Socket socket, std::shared_ptr<WebSocketState> state, std::string head)
      : Connection(core),
        strand_(socket.get_executor()),
        socket_(std::move(socket)),
        timer_(strand_),
        closing_timer_(strand_),
        state_(std::move(state)),
        options_(state_->options),
        reader_(state_->is_stranger ? options_.stranger_bytes_max : options_.message_bytes_max),
        out_(std::move(head)) {
    const Lock lock(state_->mutex);
    state_->port = this;
  }

  ~WsConnection() override { finish(kCloseAbnormal, ""); }

  void start() {
    if (core_.draining) drain();
    if (is_stranger()) idle_since = steady_ms();
    write(Written::control);
    read();
    look_later();
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
  void evict() override {
    asio::post(strand_, [self = self()] {
      if (self->is_stranger()) self->stop();
    });
  }

 private:
  // What is being written, for what follows.
  enum class Written : uint8_t { control, message, our_close, last_close };

  std::shared_ptr<WsConnection> self() { return std::static_pointer_cast<WsConnection>(shared_from_this()); }

  // As long as more than half of what may wait for this client does wait, nothing of it is heard: what its messages
  // are answered with has room.
  bool is_paused() {
    const Lock lock(state_->mutex);
    return state_->buffered > options_.send_bytes_max / 2;
  }

  bool is_stranger() {
    const Lock lock(state_->mutex);
    return state_->is_stranger;
  }

  void see_who_it_is() {
    if (is_known_ || is_stranger()) return;
    is_known_ = true;
    idle_since = kBusy;
    reader_.set_message_bytes_max(options_.message_bytes_max);
  }

  void read() {
    if (reading_ || !open_ || last_close_) return;
    if (in_.empty()) {
      reading_ = true;
      return socket_.async_read_some(asio::buffer(piece_), [self = self()](error_code ec, size_t n) {
        self->reading_ = false;
        if (!self->open_) return;
        if (ec) return self->stop();
        self->last_heard_ = steady_clock::now();
        self->in_ = {self->piece_.data(), n};
        self->read();
      });
    }
    while (!in_.empty() && open_ && !last_close_ && !is_paused()) {
      see_who_it_is();
      take_frame(reader_.feed(in_));
    }
    if (in_.empty()) read();
    flush();
  }

  void take_frame(FrameReader::Result result) {
    switch (result) {
      case FrameReader::Result::need_more:
      case FrameReader::Result::pong: return;
      case FrameReader::Result::message: {
        std::string message = reader_.take();
        if (!our_close_) call(state_->handlers.on_message, std::move(message), reader_.is_text());
        return;
      }
      case FrameReader::Result::ping:
        if (pongs_.size() > kPongBytesMax) pongs_.clear();  // the last one is enough (section 5.5.3)
        pongs_ += frame_of(Opcode::pong, reader_.take());
        return;
      case FrameReader::Result::close: return end_with(reader_.code(), reader_.take());
      case FrameReader::Result::failed: {
        const bool too_big = reader_.code() == kCloseTooBig;
        if (too_big) call(state_->handlers.on_limit, WebSocketLimit::message);
        return end_with(too_big ? options_.too_big_code : reader_.code(), too_big ? "the message is too large" : "");
      }
    }
  }

  // The client's close is answered, or one of ours says why: nothing else is sent or heard.
  void end_with(int code, std::string reason) {
    if (our_close_) {  // this is the answer to it
      finish(our_close_->code, our_close_->reason);
      return linger();
    }
    last_close_ = {code, std::move(reason)};
    in_ = {};
  }

  void look_later() {
    const auto until_ping = std::chrono::ceil<Milliseconds>(last_ping_ + options_.ping - steady_clock::now());
    const auto next = std::min({until_ping, options_.idle / 4, options_.slow_reader / 4});
    timer_.expires_after(std::max(next, Milliseconds(1)));
    timer_.async_wait([self = self()](error_code ec) {
      if (ec || !self->open_) return;
      self->look();
    });
  }

  void look() {
    const auto now = steady_clock::now();
    if (is_stuck(now)) {
      call(state_->handlers.on_limit, WebSocketLimit::slow_reader);
      return stop();
    }
    if (is_paused()) last_heard_ = now;  // it is not listened to
    if (now - last_heard_ > options_.idle) {
      call(state_->handlers.on_limit, WebSocketLimit::idle);
      return stop();
    }
    if (now - last_ping_ >= options_.ping) {
      last_ping_ = now;
      pings_ = true;
      flush();
    }
    look_later();
  }

  bool aborts() {
    const Lock lock(state_->mutex);
    return state_->aborts;
  }

  bool is_stuck(steady_clock::time_point now) {
    const Lock lock(state_->mutex);
    return state_->over && now - *state_->over > options_.slow_reader;
  }

  void flush() {
    if (!open_) return;
    if (aborts()) return stop();
    if (writing_) return;
    if (last_close_) {
      out_ = close_frame(last_close_->code == kCloseNoCode ? kNormal : last_close_->code,
                         last_close_->code == kCloseNoCode ? "" : last_close_->reason);
      return write(Written::last_close);
    }
    if (our_close_) return;
    if (!pongs_.empty()) {
      out_ = std::exchange(pongs_, {});
      return write(Written::control);
    }
    if (std::exchange(pings_, false)) {
      out_ = frame_of(Opcode::ping, "");
      return write(Written::control);
    }
    {
      const Lock lock(state_->mutex);
      if (!state_->queue.empty()) {
        out_ = frame_header(Opcode::text, state_->queue.front().size());
      } else if (state_->close) {
        our_close_ = state_->close;
      } else {
        return;
      }
    }
    if (!our_close_) return write(Written::message);
    out_ = close_frame(our_close_->code, our_close_->reason);
    write(Written::our_close);
  }

  void write(Written what) {
    writing_ = true;
    std::array<asio::const_buffer, 2> parts = {asio::buffer(out_), {}};
    if (what == Written::message) {
      const Lock lock(state_->mutex);
      // Only this connection takes from the queue, and others' additions do not move what is in a deque.
      parts[1] = asio::buffer(state_->queue.front());
    }
    write_rest(what, parts);
  }

  void write_rest(Written what, std::array<asio::const_buffer, 2> parts) {
    socket_.async_write_some(parts, [self = self(), what, parts](error_code ec, size_t n) mutable {
      if (!self->open_) return;
      if (ec) return self->stop();
      for (asio::const_buffer& part : parts) {
        const size_t taken = std::min(n, part.size());
        part += taken;
        n -= taken;
      }
      if (parts[0].size() + parts[1].size() > 0) return self->write_rest(what, parts);
      self->on_written(what);
    });
  }

  void on_written(Written what) {
    writing_ = false;
    switch (what) {
      case Written::control: break;
      case Written::message: message_written(); break;
      case Written::our_close:
        closing_timer_.expires_after(options_.handshake);  // for the client's answer
        closing_timer_.async_wait([self = self()](error_code ec) {
          if (ec || !self->open_) return;
          self->finish(self->our_close_->code, self->our_close_->reason);
          self->linger();
        });
        break;
      case Written::last_close: finish(last_close_->code, last_close_->reason); return linger();
    }
    read();
    flush();
  }

  void message_written() {
    std::function<void()> drained;
    {
      const Lock lock(state_->mutex);
      state_->buffered -= state_->queue.front().size();
      state_->queue.pop_front();
      if (state_->over && state_->buffered < options_.send_bytes / 2) {
        state_->over.reset();
        drained = state_->handlers.on_drained;
      }
    }
    call(drained);
  }

  void stop() {
    open_ = false;
    idle_since = kBusy;
    timer_.cancel();
    closing_timer_.cancel();
    error_code ignored;
    socket_.close(ignored);
    finish(kCloseAbnormal, "");
  }

  // The last frame is written: what still comes is dropped, so that the client can read it.
  void linger() {
    if (!open_) return;
    open_ = false;
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    closing_timer_.cancel();
    timer_.expires_after(core_.draining ? kLingerInDrain : kLinger);
    timer_.async_wait([self = self()](error_code ec) {
      if (!ec) self->stop();
    });
    socket_.cancel(ignored);  // a read that is pending
    discard();
  }

  void discard() {
    socket_.async_read_some(asio::buffer(piece_),
                            [self = self()](error_code ec, size_t) { ec ? self->stop() : self->discard(); });
  }

  void finish(int code, std::string_view reason) { state_->closed(code, reason); }

  const Strand strand_;
  Socket socket_;
  Timer timer_, closing_timer_;
  std::shared_ptr<WebSocketState> state_;
  const WebSocketOptions& options_;
  FrameReader reader_;
  std::array<char, 16 << 10> piece_;
  std::string_view in_;  // of piece_: not yet read
  std::string out_;      // on its way, before the front message of the queue
  std::string pongs_;    // frames that are still to go out
  std::optional<WebSocketState::Close> our_close_, last_close_;
  steady_clock::time_point last_heard_ = steady_clock::now(), last_ping_ = last_heard_;
  bool is_known_ = false, open_ = true, reading_ = false, writing_ = false, pings_ = false;
};

}  // namespace hearth::net
