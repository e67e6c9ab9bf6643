#include <poll.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "net/session.inl"

namespace hearth::net {

namespace {

constexpr size_t kLingeredBytesMax = 256 << 20;
constexpr Milliseconds kWatchEvery{100};
constexpr Milliseconds kLingerInDrain{200};
constexpr size_t kAppendedMax = 64 << 10;  // larger bodies go out from where they lie

using std::chrono::steady_clock;

}  // namespace

Session::Session(Core& core, Socket socket, Peer peer)
    : Connection(core),
      strand_(socket.get_executor()),
      socket_(std::move(socket)),
      deadline_(strand_),
      pace_(strand_),
      stall_(strand_),
      peer_(std::move(peer)),
      limits_(core.options.limits) {}

Session::~Session() {
  if (exchange_) exchange_->close(Exchange::End::cut, ExchangeState::Port::detaches);
}

void Session::start() {
  idle_since = steady_ms();
  asio::post(strand_, [self = self()] {
    if (self->state_ == State::closed) return;
    if (self->core_.draining) return self->close(Exchange::End::cut);
    self->scanner_.emplace(self->limits_);
    self->set_deadline(self->limits_.head_time);
    self->read();
  });
}

void Session::start_refused() {
  asio::post(strand_, [self = self()] {
    if (self->state_ == State::closed) return;
    Response response = self->core_.error_response(503, "the server has as many connections as it may have", "");
    response.headers.emplace_back("Retry-After", "1");
    self->answer(std::move(response), true);
  });
}

void Session::cut() {
  asio::post(strand_, [self = self()] { self->close(Exchange::End::cut); });
}

void Session::drain() {
  asio::post(strand_, [self = self()] {
    if (self->state_ == State::head && self->in_.empty()) self->close(Exchange::End::cut);
  });
}

void Session::evict() {
  asio::post(strand_, [self = self()] {
    if (self->state_ == State::head) self->close(Exchange::End::cut);
  });
}

void Session::wake() {
  // Absent in the destructor, which waits for the exchange's mutex.
  if (auto held = weak_from_this().lock())
    asio::post(strand_, [self = std::static_pointer_cast<Session>(held)] { self->flush(); });
}

void Session::set_deadline(Milliseconds time) {
  deadline_.expires_after(time);
  deadline_.async_wait([self = self()](error_code ec) {
    if (!ec && self->deadline_.expiry() <= steady_clock::now()) self->on_deadline();
  });
}

void Session::on_deadline() {
  switch (state_) {
    case State::head:
      if (in_.empty()) return close(Exchange::End::cut);
      idle_since = kBusy;
      path_ = path_said(in_);
      return refuse(408, fmt::format("the request's headers took more than {} ms", limits_.head_time.count()),
                    HttpLimit::head_time);
    case State::body:
      return refuse(408, fmt::format("no part of the body came for {} ms", limits_.body_idle.count()),
                    HttpLimit::body_idle);
    case State::exchange: return watch();
    case State::lingers: return close(Exchange::End::cut);
    case State::answering:
    case State::closed: return;
  }
}

void Session::read() {
  if (reading_ || input_ended_ || state_ == State::closed) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(piece_), [self = self()](error_code ec, size_t n) { self->on_read(ec, n); });
}

void Session::on_read(error_code ec, size_t n) {
  reading_ = false;
  if (state_ == State::closed) return;
  if (ec == asio::error::eof) return upgrade_ ? close(Exchange::End::peer_gone) : on_end_of_input();
  if (state_ == State::lingers) {
    lingered_bytes_ += n;
    if (ec || lingered_bytes_ > kLingeredBytesMax) return close(Exchange::End::peer_gone);
    return read();
  }
  in_.append(piece_.data(), n);
  if (upgrade_) return upgrade();
  if (ec) return close(Exchange::End::peer_gone);
  advance();
}

void Session::on_end_of_input() {
  input_ended_ = true;
  switch (state_) {
    case State::head:
    case State::body:
    case State::lingers: return close(Exchange::End::peer_gone);
    case State::exchange: return exchange_->close(Exchange::End::peer_gone, ExchangeState::Port::stays);
    case State::answering:
    case State::closed: return;
  }
}

// A client that has sent more requests than are read ahead may vanish as well.
void Session::watch() {
  if (state_ != State::exchange || reading_ || input_ended_) return;
  pollfd look{socket_.native_handle(), POLLRDHUP, 0};
  if (::poll(&look, 1, 0) > 0) {
    if ((look.revents & (POLLERR | POLLHUP)) != 0) return close(Exchange::End::peer_gone);
    return on_end_of_input();
  }
  set_deadline(kWatchEvery);
}

void Session::advance() {
  while (state_ == State::head ? advance_head() : state_ == State::body && advance_body()) {
  }
  if (state_ == State::head || state_ == State::body) {
    if (input_ended_) return close(Exchange::End::peer_gone);
    read();
  } else if (state_ == State::exchange) {
    in_.size() < limits_.pipelined_bytes_max ? read() : watch();
  }
}

// These return whether another step may follow.
bool Session::advance_head() {
  if (in_.empty()) return false;
  if (!scanner_) {
    scanner_.emplace(limits_);
    set_deadline(limits_.head_time);
  }
  const auto scanned = scanner_->scan(in_);
  if (const auto* refusal = std::get_if<Refusal>(&scanned)) {
    idle_since = kBusy;
    path_ = path_said(in_);
    return refuse(refusal->status, refusal->sentence, refusal->limit), false;
  }
  const auto size = std::get<std::optional<size_t>>(scanned);
  if (!size) return false;
  idle_since = kBusy;
  auto parsed = parse_head(std::string_view(in_).substr(0, *size), limits_);
  if (std::holds_alternative<Refusal>(parsed)) path_ = path_said(in_);
  in_.erase(0, *size);
  scanner_.reset();
  deadline_.cancel();
  if (const auto* refusal = std::get_if<Refusal>(&parsed))
    return refuse(refusal->status, refusal->sentence, refusal->limit), false;

  parsed_ = std::move(std::get<ParsedHead>(parsed));
  path_ = parsed_.head.path;
  parsed_.head.peer = peer_.address;
  parsed_.head.over_unix_socket = peer_.over_unix_socket;
  close_after_ = !parsed_.keep_alive;
  to_head_request_ = parsed_.head.method == "HEAD";
  try {
    auto decision = core_.handlers.on_head(parsed_.head);
    if (auto* response = std::get_if<Response>(&decision)) {
      check_response(response->status, response->headers, response->content_type);
      const bool close = close_after_ || parsed_.has_body();
      return response->delay.count() > 0 ? answer_later(std::move(*response), close)
                                         : answer(std::move(*response), close),
             false;
    }
    body_bytes_max_ = std::get<BodyPlan>(decision).bytes_max;
  } catch (const std::exception& e) {
    log::error("net", "on_head failed: {}", e.what());
    return refuse(500, "the server failed to look at the request"), false;
  }

  if (parsed_.content_length.value_or(0) > body_bytes_max_)
    return refuse(
               413,
               fmt::format("the body has {} bytes, at most {} are accepted", *parsed_.content_length, body_bytes_max_),
               HttpLimit::body),
           false;
  body_.clear();
  chunks_ = {};
  state_ = State::body;
  if (!parsed_.has_body()) return dispatch();
  set_deadline(limits_.body_idle);
  if (parsed_.expects_continue && in_.empty()) {
    out_ = "HTTP/1.1 100 Continue\r\n\r\n";
    write();
  }
  return true;
}

bool Session::advance_body() {
  if (in_.empty()) return false;
  set_deadline(limits_.body_idle);
  if (parsed_.chunked) {
    std::string_view rest = in_;
    const auto result = chunks_.feed(rest, body_, body_bytes_max_);
    in_.erase(0, in_.size() - rest.size());
    switch (result) {
      case ChunkedDecoder::Result::need_more: return false;
      case ChunkedDecoder::Result::done: return dispatch();
      case ChunkedDecoder::Result::malformed: return refuse(400, "the body is not in valid chunks"), false;
      case ChunkedDecoder::Result::too_large:
        return refuse(413, fmt::format("the body has more than {} bytes", body_bytes_max_), HttpLimit::body), false;
    }
  }
  const size_t n = std::min<size_t>(*parsed_.content_length - body_.size(), in_.size());
  body_.append(in_, 0, n);
  in_.erase(0, n);
  return body_.size() == *parsed_.content_length && dispatch();
}

bool Session::dispatch() {
  deadline_.cancel();
  state_ = State::exchange;
  head_written_ = out_ends_ = chunked_out_ = false;
  exchange_ = std::make_shared<ExchangeState>(this, limits_);
  hold_ = self();
  const auto handle = std::make_shared<Exchange>(exchange_);
  if (input_ended_) exchange_->close(Exchange::End::peer_gone, ExchangeState::Port::stays);
  try {
    core_.handlers.on_request({.head = std::move(parsed_.head), .body = std::move(body_)}, handle);
  } catch (const std::exception& e) {
    log::error("net", "on_request failed: {}", e.what());  // and without another holder, 500
  }
  return false;
}

void Session::refuse(int status, std::string_view sentence, std::optional<HttpLimit> limit) {
  if (limit) core_.passed(*limit, parsed_.head);
  log::debug("net", "{}: refused with {}: {}", peer_.address, status, sentence);
  answer(core_.error_response(status, sentence, path_), true);
}

// Nothing is read meanwhile: further requests of the connection wait too.
void Session::answer_later(Response response, bool close) {
  deadline_.cancel();
  state_ = State::answering;
  pace_.expires_after(response.delay);
  pace_.async_wait([self = self(), response = std::move(response), close](error_code ec) mutable {
    if (!ec && self->state_ == State::answering) self->answer(std::move(response), close);
  });
}

void Session::answer(Response response, bool close) {
  deadline_.cancel();
  state_ = State::answering;
  close_after_ = close || core_.draining;
  std::string bytes =
      format_head({response.status, std::move(response.headers), std::move(response.content_type)},
                  {.content_length = response.body.size(), .close = close_after_}, core_.options.clock->wall());
  if (!is_bodiless(response.status, to_head_request_)) bytes += response.body;
  if (writing_) {  // 100 Continue
    out_body_ = std::move(bytes);
  } else {
    out_ = std::move(bytes);
    write();
  }
}

void Session::flush() {
  if (state_ != State::exchange || upgrade_) return;
  if (exchange_->aborts()) return close(Exchange::End::cut);
  if (writing_) return;
  const ExchangeState::Ready ready = exchange_->ready();
  if (ready == ExchangeState::Ready::nothing) return;
  const auto due = exchange_->last_sent() + limits_.coalesce;
  if (ready == ExchangeState::Ready::bytes && steady_clock::now() < due) {
    if (pacing_) return;
    pacing_ = true;
    pace_.expires_at(due);
    pace_.async_wait([self = self()](error_code) {
      self->pacing_ = false;
      self->flush();
    });
    return;
  }
  put(exchange_->take());
}

void Session::put(ExchangeState::Output output) {
  if (output.aborts) return close(Exchange::End::cut);
  if (output.upgrade) {
    upgrade_ = std::move(output.upgrade);
    error_code ignored;
    return reading_ ? static_cast<void>(socket_.cancel(ignored)) : upgrade();
  }
  out_counted_ = output.rest.size() + output.bytes.size();
  if (output.dropped) {
    Response response = core_.error_response(500, "the request was dropped without an answer", path_);
    output.head = ResponseHead{response.status, std::move(response.headers), std::move(response.content_type)};
    output.bytes = std::move(response.body);
    output.ends = true;
    out_counted_ = 0;
  }
  out_ends_ = output.ends;
  if (output.head) {
    const int status = output.head->status;
    bodiless_ = is_bodiless(status, to_head_request_);
    HeadFraming framing;
    if (output.streams) {
      framing.chunked = parsed_.minor == 1 && !is_bodiless(status, false);
      chunked_out_ = framing.chunked && !bodiless_;
      close_after_ = close_after_ || parsed_.minor == 0;
    } else {
      framing.content_length = output.bytes.size();
    }
    framing.close = close_after_ = close_after_ || core_.draining;
    out_ = format_head(*output.head, framing, core_.options.clock->wall());
    head_written_ = true;
  }
  out_ += output.rest;
  if (bodiless_) {
    // The head was all.
  } else if (chunked_out_) {
    if (!output.bytes.empty()) out_ += chunk_of(output.bytes);
    if (output.ends) out_ += "0\r\n\r\n";
  } else if (output.bytes.size() <= kAppendedMax) {
    out_ += output.bytes;
  } else {
    out_body_ = std::move(output.bytes);
  }
  if (out_.empty() && out_body_.empty()) return all_written();
  write();
}

void Session::upgrade() {
  if (!in_.empty()) {  // frames before they were agreed on
    upgrade_.reset();
    return close(Exchange::End::peer_gone);
  }
  state_ = State::closed;
  deadline_.cancel();
  stall_.cancel();
  const auto held = std::move(hold_);
  const auto taker = std::move(upgrade_);
  const auto ended = std::move(exchange_);
  taker->take(core_, std::move(socket_));
  ended->close(Exchange::End::done, ExchangeState::Port::detaches);
}

void Session::write() {
  writing_ = true;
  stall_.expires_after(limits_.slow_reader);
  stall_.async_wait([self = self()](error_code ec) {
    if (!ec && self->writing_ && self->stall_.expiry() <= steady_clock::now()) self->close(Exchange::End::too_slow);
  });
  const size_t first = std::min(out_sent_, out_.size());
  const std::array<asio::const_buffer, 2> rest = {asio::buffer(out_) + first,
                                                  asio::buffer(out_body_) + (out_sent_ - first)};
  socket_.async_write_some(rest, [self = self()](error_code ec, size_t n) { self->on_written(ec, n); });
}

void Session::on_written(error_code ec, size_t n) {
  writing_ = false;
  if (state_ == State::closed) return;
  if (ec) return close(Exchange::End::peer_gone);
  out_sent_ += n;
  const size_t total = out_.size() + out_body_.size();
  if (state_ == State::exchange && out_counted_ > 0) {
    // Framing is taken to go first: the exchange's bytes still to come are at most those that are left.
    const size_t credit = out_counted_ - std::min(out_counted_, total - out_sent_);
    out_counted_ -= credit;
    exchange_->written(credit);
    const auto over = exchange_->over_since();
    if (over && steady_clock::now() - *over > limits_.slow_reader) return close(Exchange::End::too_slow);
  }
  if (out_sent_ < total) return write();
  all_written();
}

void Session::all_written() {
  stall_.cancel();
  if (state_ == State::exchange && out_counted_ > 0) exchange_->written(std::exchange(out_counted_, 0));
  out_.clear();
  out_body_ = {};
  out_sent_ = 0;
  switch (state_) {
    case State::exchange: {
      if (!out_ends_) {
        if (bodiless_ || !exchange_->lend(socket_.native_handle(), chunked_out_)) flush();
        return;
      }
      const auto held = std::move(hold_);
      const auto ended = std::move(exchange_);
      close_after_ ? linger() : next_request();
      return ended->close(Exchange::End::done, ExchangeState::Port::detaches);
    }
    case State::answering: return close_after_ ? linger() : next_request();
    case State::head:
    case State::body:
    case State::lingers:
    case State::closed: return;
  }
}

void Session::next_request() {
  if (core_.draining) return linger();
  state_ = State::head;
  to_head_request_ = false;
  idle_since = steady_ms();
  if (in_.empty()) set_deadline(limits_.keep_alive_idle);
  advance();
}

void Session::linger() {
  if (input_ended_) return close(Exchange::End::done);
  state_ = State::lingers;
  in_ = {};
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  set_deadline(core_.draining ? std::min(kLingerInDrain, limits_.linger) : limits_.linger);
  read();
}

void Session::close(Exchange::End end) {
  if (state_ == State::closed) return;
  state_ = State::closed;
  idle_since = kBusy;
  deadline_.cancel();
  pace_.cancel();
  stall_.cancel();
  if (exchange_) exchange_->take_back();
  if (end == Exchange::End::too_slow) core_.passed(HttpLimit::slow_reader, parsed_.head);
  error_code ignored;
  if (end == Exchange::End::too_slow) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
  upgrade_.reset();
  const auto held = std::move(hold_);
  if (const auto ended = std::move(exchange_)) ended->close(end, ExchangeState::Port::detaches);
}

}  // namespace hearth::net
