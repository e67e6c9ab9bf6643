#include "net/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "net/io.inl"
#include "net/session.inl"

namespace hearth::net {

namespace {

constexpr int kThreadsMax = 64;
constexpr size_t kRefusalsMax = 64;  // connections beyond the limit that are told so; further ones are closed at once
constexpr Milliseconds kAcceptPause{50};  // without descriptors
constexpr Milliseconds kCutTime{2'000};

Peer peer_of(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = "";
  if (from.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(from).sin_addr, text, sizeof text);
  } else if (from.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, text, sizeof text);
  } else {
    return {.address = "unix", .over_unix_socket = true};
  }
  return {.address = text, .over_unix_socket = false};
}

void set_options(int fd, const Peer& peer, const HttpLimits& limits) {
  const auto set = [fd](int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof value); };
  if (limits.socket_send_bytes > 0) set(SOL_SOCKET, SO_SNDBUF, static_cast<int>(limits.socket_send_bytes));
  if (peer.over_unix_socket) return;
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A machine that vanished without a word is noticed within 30 s.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

int64_t steady_ms() {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Connection::Connection(Core& core) : core_(core) {
  const std::lock_guard lock(core_.mutex);
  core_.connections.insert(this);
}

Connection::~Connection() {
  const std::lock_guard lock(core_.mutex);
  core_.connections.erase(this);
  core_.changed.notify_all();
}

std::vector<std::shared_ptr<Connection>> Core::all() {
  std::vector<std::shared_ptr<Connection>> out;
  const std::lock_guard lock(mutex);
  for (Connection* connection : connections)
    if (auto held = connection->weak_from_this().lock()) out.push_back(std::move(held));
  return out;
}

Response Core::error_response(int status, std::string_view sentence, std::string_view path) const noexcept {
  if (handlers.error_body) {
    try {
      Response out = handlers.error_body(status, sentence, path);
      check_response(out.status, out.headers, out.content_type);
      return out;
    } catch (const std::exception& e) {
      log::error("net", "error_body failed: {}", e.what());
    }
  }
  return {.status = status, .body = std::string(sentence) + "\n", .content_type = "text/plain; charset=utf-8"};
}

void Core::passed(HttpLimit limit, const RequestHead& head) const noexcept {
  if (!handlers.on_limit) return;
  try {
    handlers.on_limit(limit, head);
  } catch (const std::exception& e) {
    log::error("net", "on_limit failed: {}", e.what());
  }
}

// A listening socket and its loop of accepts, on a strand of its own.
class Acceptor {
 public:
  Acceptor(Core& core, Listener listener)
      : core_(core),
        strand_(asio::make_strand(core.io.get_executor())),
        descriptor_(strand_, listener.socket.get()),
        pause_(strand_),
        listener_(std::move(listener)) {
    listener_.socket.release();  // the descriptor owns it now
  }

  const Listener& listener() const { return listener_; }

  void wait() {
    descriptor_.async_wait(asio::posix::descriptor_base::wait_read, [this](error_code ec) {
      if (!ec && descriptor_.is_open()) accept_all();
    });
  }

  // Any thread but an I/O thread; when it returns nothing more is accepted.
  void close() {
    std::promise<void> done;
    asio::post(strand_, [this, &done] {
      error_code ignored;
      descriptor_.close(ignored);
      pause_.cancel();
      remove_file();
      done.set_value();
    });
    done.get_future().wait();
  }

  void remove_file() {
    if (!listener_.unlink_path.empty()) unlink(listener_.unlink_path.c_str());
    listener_.unlink_path.clear();
  }

 private:
  void accept_all() {
    for (;;) {
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      Descriptor fd(::accept4(descriptor_.native_handle(), reinterpret_cast<sockaddr*>(&from), &size,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.get() >= 0) {
        admit(std::move(fd), from);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return wait();
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        return pause(errno);
      } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
        return log::error("net", "{}: accept: {}; no longer listening", listener_.address, std::strerror(errno));
      }  // else: that client is gone already
    }
  }

  // Clients wait in the system's queue; idle connections make room.
  void pause(int error) {
    log::warn("net", "{}: accept: {}; trying again", listener_.address, std::strerror(error));
    evict_oldest();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code ec) {
      if (!ec && descriptor_.is_open()) wait();
    });
  }

  bool evict_oldest() {
    std::shared_ptr<Connection> oldest;
    for (auto& connection : core_.all())
      if (const int64_t since = connection->idle_since; since != Connection::kBusy)
        if (!oldest || since < oldest->idle_since) oldest = std::move(connection);
    if (!oldest) return false;
    oldest->idle_since = Connection::kBusy;  // chosen once
    oldest->evict();
    return true;
  }

  void admit(Descriptor fd, const sockaddr_storage& from) noexcept try {
    const Peer peer = peer_of(from);
    set_options(fd.get(), peer, core_.options.limits);
    size_t open = 0;
    {
      const std::lock_guard lock(core_.mutex);
      open = core_.connections.size();
    }
    const size_t limit = core_.options.limits.connections_max;
    const bool refused = open >= limit && !evict_oldest();
    if (refused) core_.passed(HttpLimit::connections);
    if (refused && open >= limit + kRefusalsMax) return;
    const int family = from.ss_family;
    Socket socket(asio::make_strand(core_.io.get_executor()), asio::generic::stream_protocol(family, 0), fd.get());
    fd.release();
    const auto session = std::make_shared<Session>(core_, std::move(socket), peer);
    refused ? session->start_refused() : session->start();
  } catch (const std::exception& e) {  // no memory, say: that client is closed, others are not concerned
    log::error("net", "{}: a connection could not be taken: {}", listener_.address, e.what());
  }

  Core& core_;
  Strand strand_;
  asio::posix::basic_stream_descriptor<Strand> descriptor_;
  Timer pause_;
  Listener listener_;
};

class HttpServer::Impl {
 public:
  Impl(ServerOptions options, Handlers handlers) : core_(std::move(options), std::move(handlers)) {
    const ServerOptions& o = core_.options;
    if (o.threads < 1 || o.threads > kThreadsMax)
      fail(ErrorKind::invalid_argument, "{} I/O threads, expected 1 to {}", o.threads, kThreadsMax);
    if (!core_.handlers.on_head || !core_.handlers.on_request)
      fail(ErrorKind::invalid_argument, "a server needs the handlers on_head and on_request");
  }

  void listen(std::vector<Listener> listeners) {
    if (!core_.options.host.empty()) listeners.push_back(listen_tcp(core_.options.host, core_.options.port));
    if (!core_.options.unix_path.empty()) listeners.push_back(listen_unix(core_.options.unix_path));
    if (listeners.empty()) fail(ErrorKind::invalid_argument, "a server has no address to listen on");
    for (Listener& listener : listeners) acceptors_.push_back(std::make_unique<Acceptor>(core_, std::move(listener)));
    if (core_.options.begins == ServerOptions::Begins::at_once) start();
  }

  void start() {
    for (auto& acceptor : acceptors_) acceptor->wait();
    for (int i = 0; i < core_.options.threads; ++i) threads_.emplace_back([this] { run(); });
  }

  ~Impl() {
    stop_listening();
    core_.draining = true;
    for (const auto& connection : core_.all()) connection->cut();
    wait_empty(kCutTime);
    work_.reset();
    core_.io.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  int port() const {
    for (const auto& acceptor : acceptors_)
      if (acceptor->listener().port > 0) return acceptor->listener().port;
    return 0;
  }

  size_t drain(Milliseconds time) {
    stop_listening();
    core_.draining = true;
    for (const auto& connection : core_.all()) connection->drain();
    return wait_empty(time);
  }

  void after(Milliseconds time, std::function<void()> fn) {
    auto timer = std::make_unique<asio::steady_timer>(core_.io, time);
    asio::steady_timer& started = *timer;
    started.async_wait([timer = std::move(timer), fn = std::move(fn)](error_code ec) {
      if (!ec) fn();
    });
  }

  void ping(const std::weak_ptr<Exchange>& exchange, std::string bytes, Milliseconds silence, Milliseconds next) {
    after(next, [this, exchange, bytes = std::move(bytes), silence]() mutable {
      const auto held = exchange.lock();
      const auto then = held ? held->ping(bytes, silence) : std::nullopt;
      if (then) ping(exchange, std::move(bytes), silence, *then);
    });
  }

  size_t connections() {
    const std::lock_guard lock(core_.mutex);
    return core_.connections.size();
  }

 private:
  void run() {
    for (;;) {
      try {
        core_.io.run();
        return;
      } catch (const std::exception& e) {  // of a timer's function or an exchange's callback
        log::error("net", "an I/O handler failed: {}", e.what());
      }
    }
  }

  void stop_listening() {
    const bool runs = !threads_.empty();  // else listening failed, or nobody said start()
    for (auto& acceptor : acceptors_) runs ? acceptor->close() : acceptor->remove_file();
  }

  size_t wait_empty(Milliseconds time) {
    std::unique_lock lock(core_.mutex);
    core_.changed.wait_for(lock, time, [&] { return core_.connections.empty(); });
    return core_.connections.size();
  }

  Core core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{core_.io.get_executor()};
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(ServerOptions options, Handlers handlers) {
  std::vector<Listener> inherited = std::move(options.inherited);
  options.inherited.clear();
  impl_ = std::make_unique<Impl>(std::move(options), std::move(handlers));
  impl_->listen(std::move(inherited));
}

HttpServer::~HttpServer() = default;
void HttpServer::start() { impl_->start(); }
int HttpServer::port() const { return impl_->port(); }
size_t HttpServer::drain(Milliseconds time) { return impl_->drain(time); }
void HttpServer::after(Milliseconds time, std::function<void()> fn) { impl_->after(time, std::move(fn)); }
void HttpServer::ping(const std::shared_ptr<Exchange>& exchange, std::string bytes, Milliseconds silence) {
  if (silence <= Milliseconds(0))
    fail(ErrorKind::invalid_argument, "pings every {} ms, expected at least 1", silence.count());
  impl_->ping(exchange, std::move(bytes), silence, silence);
}
size_t HttpServer::connections() const { return impl_->connections(); }

}  // namespace hearth::net
