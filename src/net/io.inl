// Private to asio.cpp, server.cpp, session.cpp and websocket.cpp: the only place where Asio's types have names. They
// are compiled once, in asio.cpp (BOOST_ASIO_SEPARATE_COMPILATION in CMakeLists.txt).
#pragma once
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "net/server.h"

namespace hearth::net {

namespace asio = boost::asio;
using boost::system::error_code;
using Strand = asio::strand<asio::io_context::executor_type>;
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Strand>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Strand>;

struct Core;

// Something that holds a client's socket; lives as long as its handlers. It stands in Core's list from its construction
// to its destruction. All but the constructor and destructor: any thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(Core& core);
  virtual ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual void cut() = 0;    // ends at once
  virtual void drain() = 0;  // ends when its exchange has
  virtual void evict() = 0;  // ends if it waits for a request, or for the rest of its head

  // Steady milliseconds since when it has no whole head, for whom goes first; kBusy while it serves.
  static constexpr int64_t kBusy = INT64_MAX;
  std::atomic<int64_t> idle_since{kBusy};

 protected:
  Core& core_;
};

// What the server and its connections share. `io` is destroyed first, with every handler and so every connection.
struct Core {
  Core(ServerOptions server_options, Handlers server_handlers)
      : options(std::move(server_options)), handlers(std::move(server_handlers)) {}

  std::vector<std::shared_ptr<Connection>> all();
  Response error_response(int status, std::string_view sentence, std::string_view path) const noexcept;
  void passed(HttpLimit limit, const RequestHead& head = {}) const noexcept;

  const ServerOptions options;
  const Handlers handlers;
  std::atomic<bool> draining = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::unordered_set<Connection*> connections;
  asio::io_context io;
};

int64_t steady_ms();

// Takes a connection's socket when a request's answer is to become another protocol. Destroyed without take(): the
// connection went away before.
class Upgrade {
 public:
  virtual ~Upgrade() = default;
  virtual void take(Core& core, Socket socket) = 0;  // once, on the socket's strand
};

}  // namespace hearth::net
