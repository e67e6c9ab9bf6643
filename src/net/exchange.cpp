#include "net/exchange.h"

#include <sys/socket.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "net/exchange_state.h"
#include "net/response_head.h"

namespace hearth::net {

namespace {
using Lock = std::unique_lock<std::mutex>;
using std::chrono::steady_clock;

void require_no_answer(const ExchangeState& state) {
  if (state.phase != ExchangeState::Phase::waits)
    fail(ErrorKind::invalid_argument, "the request has its answer already, a second one cannot be sent");
}

void put_response(ExchangeState& state, Response response) {
  state.next.head = ResponseHead{response.status, std::move(response.headers), std::move(response.content_type)};
  state.next.bytes = std::move(response.body);
  state.next.ends = true;
  state.buffered = state.next.bytes.size();
  state.phase = ExchangeState::Phase::answered;
  state.wake_locked();
}

void put_abort(ExchangeState& state) {
  state.phase = ExchangeState::Phase::aborted;
  state.next.aborts = true;
  state.woken = false;  // an earlier wake may wait for a write that makes no progress
  state.wake_locked();
}

template <class Callback, class... Args>
void call(const Callback& callback, Args... args) noexcept {
  if (!callback) return;
  try {
    callback(args...);
  } catch (const std::exception& e) {
    log::error("net", "a callback of an exchange failed: {}", e.what());
  }
}
}  // namespace

bool ExchangeState::aborts() {
  const Lock lock(mutex);
  return next.aborts;
}

ExchangeState::Ready ExchangeState::ready() {
  const Lock lock(mutex);
  if (next.head || next.ends || next.aborts || next.dropped || next.upgrade) return Ready::at_once;
  return next.bytes.empty() && next.rest.empty() ? Ready::nothing : Ready::bytes;
}

ExchangeState::Output ExchangeState::take() {
  const Lock lock(mutex);
  woken = false;
  lent = -1;
  return std::exchange(next, Output{});
}

bool ExchangeState::lend(int socket, bool chunked) {
  const Lock lock(mutex);
  sent = steady_clock::now();
  if (phase != Phase::streams || !next.bytes.empty() || next.upgrade) return false;
  lent = socket;
  lent_chunked = chunked;
  return true;
}

void ExchangeState::take_back() {
  const Lock lock(mutex);
  lent = -1;
}

ExchangeState::SteadyTime ExchangeState::last_sent() {
  const Lock lock(mutex);
  return sent;
}

// Under the lock. False: it is not the time, or the socket is not lent. What the system does not take is left for the
// I/O thread, as is the end of a client that does not listen any more.
bool ExchangeState::send_lent(std::string_view bytes) {
  const auto now = steady_clock::now();
  if (lent < 0 || bytes.empty() || !next.bytes.empty() || now < sent + limits.coalesce) return false;
  std::string piece = lent_chunked ? chunk_of(bytes) : std::string(bytes);
  const ssize_t n = ::send(lent, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  sent = now;
  if (n == static_cast<ssize_t>(piece.size())) return true;
  lent = -1;
  next.rest = piece.substr(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  buffered += next.rest.size();
  return true;
}

void ExchangeState::written(size_t bytes) {
  std::function<void()> drained;
  {
    const Lock lock(mutex);
    HEARTH_CHECK(bytes <= buffered, "{} bytes written, {} were buffered", bytes, buffered);
    buffered -= bytes;
    if (over && buffered < limits.stream_bytes / 2) {
      over.reset();
      drained = on_drained;
    }
  }
  call(drained);
}

std::optional<ExchangeState::SteadyTime> ExchangeState::over_since() {
  const Lock lock(mutex);
  return over;
}

void ExchangeState::close(Exchange::End end, Port after) {
  std::function<void(Exchange::End)> callback;
  std::function<void()> dropped;  // these hold what is let go outside the lock
  Output left;
  {
    const Lock lock(mutex);
    lent = -1;
    if (after == Port::detaches) port = nullptr, left = std::exchange(next, Output{});
    if (closed) return;
    closed = end;
    callback.swap(on_closed);
    dropped.swap(on_drained);
  }
  call(callback, end);
}

Exchange::Exchange(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}

Exchange::~Exchange() {
  const Lock lock(state_->mutex);
  if (state_->port == nullptr) return;
  if (state_->phase == ExchangeState::Phase::waits)
    state_->next.dropped = true, state_->phase = ExchangeState::Phase::answered, state_->wake_locked();
  else if (state_->phase == ExchangeState::Phase::streams) put_abort(*state_);
}

void Exchange::send(Response response) {
  check_response(response.status, response.headers, response.content_type);
  const Lock lock(state_->mutex);
  if (state_->phase == ExchangeState::Phase::aborted) return;
  require_no_answer(*state_);
  put_response(*state_, std::move(response));
}

void Exchange::begin_stream(int status, std::vector<Header> headers, std::string content_type) {
  check_response(status, headers, content_type);
  const Lock lock(state_->mutex);
  if (state_->phase == ExchangeState::Phase::aborted) return;
  require_no_answer(*state_);
  state_->next.head = ResponseHead{status, std::move(headers), std::move(content_type)};
  state_->next.streams = true;
  state_->phase = ExchangeState::Phase::streams;
  state_->last_write = steady_clock::now();
  state_->wake_locked();
}

bool Exchange::write(std::string_view bytes) {
  const Lock lock(state_->mutex);
  ExchangeState& state = *state_;
  if (state.phase == ExchangeState::Phase::waits)
    fail(ErrorKind::invalid_argument, "a stream is written before begin_stream()");
  if (state.port == nullptr || state.phase == ExchangeState::Phase::aborted) return true;
  if (state.phase == ExchangeState::Phase::answered)
    fail(ErrorKind::invalid_argument, "an answer is written to after its end");
  state.last_write = steady_clock::now();
  if (bytes.size() > state.limits.stream_bytes_max - std::min(state.buffered, state.limits.stream_bytes_max)) {
    put_abort(state);
    return false;
  }
  if (!state.send_lent(bytes)) {
    state.next.bytes.append(bytes);
    state.buffered += bytes.size();
  }
  if (state.buffered > state.limits.stream_bytes && !state.over) state.over = steady_clock::now();
  if (state.buffered > 0) state.wake_locked();
  return !state.over;
}

void Exchange::end() {
  const Lock lock(state_->mutex);
  if (state_->phase == ExchangeState::Phase::waits)
    fail(ErrorKind::invalid_argument, "a stream is ended before begin_stream()");
  if (state_->phase != ExchangeState::Phase::streams) return;
  state_->phase = ExchangeState::Phase::answered;
  state_->next.ends = true;
  state_->wake_locked();
}

std::optional<Milliseconds> Exchange::ping(std::string_view bytes, Milliseconds silence) {
  const Lock lock(state_->mutex);
  ExchangeState& state = *state_;
  if (state.port == nullptr || state.closed || state.phase != ExchangeState::Phase::streams) return std::nullopt;
  const auto now = steady_clock::now();
  const auto left = std::chrono::ceil<Milliseconds>(state.last_write + silence - now);
  if (left > Milliseconds(0)) return left;
  state.last_write = now;
  if (!state.over) {  // else it waits for the client, not for its owner
    state.next.bytes.append(bytes);
    state.buffered += bytes.size();
    state.wake_locked();
  }
  return silence;
}

void Exchange::abort() {
  const Lock lock(state_->mutex);
  put_abort(*state_);
}

size_t Exchange::buffered() const {
  const Lock lock(state_->mutex);
  return state_->port == nullptr ? 0 : state_->buffered;
}

bool Exchange::ended() const {
  const Lock lock(state_->mutex);
  return state_->closed.has_value();
}

void Exchange::on_closed(std::function<void(End)> callback) {
  std::optional<End> end;
  {
    const Lock lock(state_->mutex);
    end = state_->closed;
    if (!end) state_->on_closed.swap(callback);  // the former one is let go outside the lock
  }
  if (end && callback) callback(*end);
}

void Exchange::on_drained(std::function<void()> callback) {
  const Lock lock(state_->mutex);
  if (!state_->closed) state_->on_drained.swap(callback);
}

}  // namespace hearth::net
