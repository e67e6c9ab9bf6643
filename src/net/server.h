// An HTTP/1.1 server: listens, reads and checks requests, hands them to its owner, writes the answers. It knows no
// route, no JSON and no authentication. Its I/O threads run the handlers; requests of one connection are answered in
// their order.
//
//   net::HttpServer server({.port = 8080}, {.on_head = ..., .on_request = ..., .error_body = ...});
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/exchange.h"
#include "net/http.h"
#include "net/listen.h"

namespace hearth::net {

struct ServerOptions {
  std::string host = "127.0.0.1";     // empty: no TCP
  int port = 0;                       // 0: the system chooses
  std::string unix_path{};            // empty: no Unix socket
  std::vector<Listener> inherited{};  // from inherited_listeners(); in addition to the above
  int threads = 1;                    // I/O threads, 1..64
  HttpLimits limits{};
  const Clock* clock = &system_clock();  // of the Date header
  enum class Begins : uint8_t { at_once, when_told } begins = Begins::at_once;
};

class HttpServer {
 public:
  // Listens when it returns, and serves at once, or from start() on: until then clients wait. Throws Error{io} when it
  // cannot listen, naming the address and, if so, that the port is in use; Error{invalid_argument} for options out of
  // range, handlers that are missing, or nothing to listen on.
  HttpServer(ServerOptions options, Handlers handlers);
  // Cuts what is still open; every on_closed has been called when it returns. Not on an I/O thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void start();  // once, where ServerOptions::begins says when_told

  int port() const;  // of the first TCP listener; 0 without one

  // Stops listening, ends idle connections and, with code 1001, WebSockets; each other connection ends with the answer
  // that it waits for. Waits until none is open, at most that long; returns how many are left. Not on an I/O thread.
  size_t drain(Milliseconds time);

  // Calls fn on an I/O thread after that time; never, if the server has stopped by then. Any thread.
  void after(Milliseconds time, std::function<void()> fn);

  // From begin_stream() on: whenever the stream's owner wrote nothing for `silence` (> 0), `bytes` are written, e.g.
  // sse_comment("ping") every 2 s (spec server 47). Ends with the stream; does not keep the exchange alive.
  void ping(const std::shared_ptr<Exchange>& exchange, std::string bytes, Milliseconds silence);

  size_t connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::net
