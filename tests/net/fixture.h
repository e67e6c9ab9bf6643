// A server with a few routes, on a port of the system's choice.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/raw_client.h"
#include "net/server.h"
#include "net/sse.h"

namespace hearth::net::test {

using namespace std::chrono_literals;

// A value that another thread brings.
template <class T>
class Awaited {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  std::optional<T> get(Milliseconds patience = Milliseconds(kPatienceMs)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return taken_ < values_.size(); })) return std::nullopt;
    return std::move(values_[taken_++]);  // nothing of it stays here
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
  size_t taken_ = 0;
};

inline Response text(std::string body, int status = 200) {
  return {.status = status, .body = std::move(body), .content_type = "text/plain"};
}

inline size_t open_descriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

// True once it holds, within the patience.
template <class Condition>
bool eventually(const Condition& condition, Milliseconds patience = Milliseconds(kPatienceMs)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// GET /hello: text. POST /echo: the body. /describe: method, path, query, peer. /hold: the exchange goes to `held`.
// /drop: nobody answers. /throw. /refuse: 401 before the body. /none: 204.
class Server {
 public:
  explicit Server(ServerOptions options = {}, size_t body_bytes_max = 1 << 20) {
    Handlers handlers;
    handlers.on_head = [body_bytes_max](const RequestHead& head) -> std::variant<Response, BodyPlan> {
      if (head.path == "/refuse") return text("who are you?\n", 401);
      if (head.path == "/throw_early") throw std::runtime_error("on purpose");
      return BodyPlan{body_bytes_max};
    };
    handlers.on_request = [this](Request request, std::shared_ptr<Exchange> exchange) {
      const std::string& path = request.head.path;
      if (path == "/hello") return exchange->send(text("hello"));
      if (path == "/echo") return exchange->send(text(std::move(request.body)));
      if (path == "/none") return exchange->send({.status = 204});
      if (path == "/describe")
        return exchange->send(text(request.head.method + " " + path + " " + request.head.query + " " +
                                   request.head.peer + " " + request.body));
      if (path == "/throw") throw std::runtime_error("on purpose");
      if (path == "/drop") return;
      if (path == "/hold") return held.put(std::move(exchange));
      if (on_other) return on_other(std::move(request), std::move(exchange));
      exchange->send(text("no such path", 404));
    };
    handlers.on_limit = [this](HttpLimit limit, const RequestHead& head) { limits.put({limit, head.path}); };
    server = std::make_unique<HttpServer>(std::move(options), std::move(handlers));
  }
  ~Server() { server.reset(); }

  int port() const { return server->port(); }
  RawClient client() const { return RawClient(port()); }

  Awaited<std::shared_ptr<Exchange>> held;
  Awaited<std::pair<HttpLimit, std::string>> limits;                 // that were passed; the path
  std::function<void(Request, std::shared_ptr<Exchange>)> on_other;  // set before requests come
  std::unique_ptr<HttpServer> server;
};

inline std::string get(std::string_view target, std::string_view headers = {}) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers) + "\r\n";
}
inline std::string post(std::string_view target, std::string_view body, std::string_view headers = {}) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(headers) + "\r\n" + std::string(body);
}

}  // namespace hearth::net::test
