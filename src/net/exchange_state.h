// Private to net: where an exchange's owner (any thread) and its connection (its I/O thread) meet.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "net/exchange.h"
#include "net/http.h"
#include "net/response_head.h"

namespace hearth::net {

// The connection as the exchange sees it. wake() has take() called soon on the I/O thread; called with the exchange's
// mutex held, so that the port cannot go away meanwhile.
class ExchangePort {
 public:
  virtual void wake() = 0;

 protected:
  ~ExchangePort() = default;
};

class Upgrade;  // session.inl: takes the connection over

struct ExchangeState {
  using SteadyTime = std::chrono::steady_clock::time_point;

  // What the connection is to write next.
  struct Output {
    std::optional<ResponseHead> head{};  // first of all
    bool streams = false;                // the head is that of a stream
    std::string rest{};                  // of a piece that is on its way, as it goes out: before `bytes`
    std::string bytes{};
    bool ends = false;  // with these bytes
    bool aborts = false;
    bool dropped = false;  // nobody answers: 500
    std::shared_ptr<Upgrade> upgrade{};
  };
  enum class Ready { nothing, bytes, at_once };

  ExchangeState(ExchangePort* connection, const HttpLimits& bounds) : port(connection), limits(bounds) {}

  // On the I/O thread. take() at most once until written() has reported all of its bytes (`bytes` alone, no framing).
  Ready ready();
  bool aborts();
  Output take();
  void written(size_t bytes);
  std::optional<SteadyTime> over_since();
  // Everything of the stream has gone. True: until take(), take_back() or close() its owner sends on this socket
  // itself, which saves a turn of the I/O thread; false: there is more to write.
  bool lend(int socket, bool chunked);
  void take_back();
  SteadyTime last_sent();  // of the stream's writes
  // The first call decides what on_closed hears. `detach`: the port goes away, so later output is dropped.
  enum class Port { stays, detaches };
  void close(Exchange::End end, Port after);

  bool send_lent(std::string_view bytes);

  void wake_locked() {
    if (port != nullptr && !woken) port->wake(), woken = true;
  }

  std::mutex mutex;
  ExchangePort* port;
  const HttpLimits limits;

  enum class Phase { waits, streams, answered, aborted };
  Phase phase = Phase::waits;
  bool woken = false;
  Output next;          // since the last take()
  size_t buffered = 0;  // in `next` and on the way to the system
  std::optional<SteadyTime> over;
  SteadyTime last_write = std::chrono::steady_clock::now();
  int lent = -1;  // a socket
  bool lent_chunked = false;
  SteadyTime sent{};
  std::optional<Exchange::End> closed;
  std::function<void(Exchange::End)> on_closed;
  std::function<void()> on_drained;
};

}  // namespace hearth::net
