// The answer to one request, as its owner holds it: a response at once, or a stream piece by piece. Any thread; nothing
// blocks. What is written goes to the connection's I/O thread: the first piece at once, later ones together, at most
// one write per HttpLimits::coalesce.
//
//   exchange->begin_stream(200, {{"Cache-Control", "no-cache"}}, std::string(kEventStream));
//   exchange->on_closed([id](Exchange::End end) { scheduler.cancel(id); });
//   if (!exchange->write(sse_event("", delta))) park_until_drained();
//   exchange->end();
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace hearth::net {

struct ExchangeState;

class Exchange {
 public:
  enum class End {
    done,       // the whole answer is written; or the connection became a WebSocket
    peer_gone,  // the client closed its side (FIN) or all of it (RST)
    too_slow,   // the client did not read, HttpLimits::slow_reader or stream_bytes_max
    cut,        // abort(), or the server stops
  };

  explicit Exchange(std::shared_ptr<ExchangeState> state);
  // Without an answer, the answer is 500; a stream that has not ended is cut, so that the client sees that it is not
  // whole.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Once, and not with a stream: Error{invalid_argument} for a second answer, or one that check_response() refuses.
  // When the exchange has ended already these do nothing.
  void send(Response response);
  void begin_stream(int status, std::vector<Header> headers, std::string content_type);

  // Part of the stream. False: more than HttpLimits::stream_bytes wait, so the owner should pause until on_drained;
  // what was handed in is kept. Bytes after the end of the exchange are dropped. Error{invalid_argument} outside a
  // stream.
  bool write(std::string_view bytes);
  void end();

  // Writes `bytes` if nothing was written for `silence`. When to call again; absent: no stream is open. Never throws
  // for a stream that has ended. HttpServer::ping calls it in time.
  std::optional<Milliseconds> ping(std::string_view bytes, Milliseconds silence);

  void abort();  // closes the connection now

  size_t buffered() const;  // bytes of the answer that the system has not taken
  bool ended() const;       // on_closed was or will be called

  // Once, on the I/O thread, with no lock held; at once if it has ended already. Also while nothing is written: a read
  // is always pending. After peer_gone by FIN the answer may still be written, a half-closed client can read it.
  // One callback of each kind; a second replaces the first.
  void on_closed(std::function<void(End)> callback);
  // On the I/O thread, each time the buffer falls below half of stream_bytes after it was above stream_bytes.
  void on_drained(std::function<void()> callback);

  const std::shared_ptr<ExchangeState>& state() const { return state_; }  // for net itself

 private:
  std::shared_ptr<ExchangeState> state_;
};

}  // namespace hearth::net
