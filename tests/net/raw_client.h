// A client on a bare socket: bytes as they are, pauses, half-closes, resets. Blocks, with time limits.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::net::test {

inline constexpr int kPatienceMs = 10'000;

struct RawResponse {
  int status = 0;
  std::string head;    // with its empty line
  std::string body;    // as framed: chunks are taken out of their framing
  bool whole = false;  // the end was seen: by length, last chunk, or end of the connection where that is the framing
};

class RawClient {
 public:
  explicit RawClient(int port, int receive_bytes = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("connect failed");
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  explicit RawClient(const std::string& unix_path) {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, unix_path.data(), unix_path.size());
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("connect failed");
  }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), in_(std::move(other.in_)) {}
  ~RawClient() { close(); }

  // False: the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  void finish_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  // One piece more into the buffer; false: end, reset, or nothing for that long (then timed_out()).
  bool receive(int patience_ms = kPatienceMs) {
    pollfd look{fd_, POLLIN, 0};
    timed_out_ = ::poll(&look, 1, patience_ms) == 0;
    if (timed_out_) return false;
    char piece[64 << 10];
    const ssize_t n = ::recv(fd_, piece, sizeof piece, 0);
    if (n <= 0) return false;
    in_.append(piece, static_cast<size_t>(n));
    return true;
  }
  bool timed_out() const { return timed_out_; }

  // Reads until the buffer holds the text; false if it never does.
  bool wait_for(std::string_view text) {
    while (in_.find(text) == in_.npos)
      if (!receive()) return false;
    return true;
  }
  // n bytes, or fewer at the end.
  std::string take(size_t n) {
    while (in_.size() < n && receive()) {
    }
    std::string out = in_.substr(0, n);
    in_.erase(0, n);
    return out;
  }
  std::string take_line() {
    if (!wait_for("\r\n")) return {};
    std::string out = in_.substr(0, in_.find("\r\n"));
    in_.erase(0, out.size() + 2);
    return out;
  }
  // All until the server closes; false: it did not within the patience.
  bool wait_closed(int patience_ms = kPatienceMs) {
    while (receive(patience_ms)) {
    }
    return !timed_out_;
  }
  const std::string& buffer() const { return in_; }

  RawResponse response(bool to_head_request = false) {
    RawResponse out;
    if (!wait_for("\r\n\r\n")) return out;
    const size_t end = in_.find("\r\n\r\n") + 4;
    out.head = in_.substr(0, end);
    in_.erase(0, end);
    out.status = std::stoi(out.head.substr(9, 3));
    const size_t length = out.head.find("Content-Length: ");
    if (to_head_request || out.status == 204 || out.status == 304 || out.status < 200) {
      out.whole = true;
    } else if (out.head.find("Transfer-Encoding: chunked") != out.head.npos) {
      read_chunks(out);
    } else if (length != out.head.npos) {
      const size_t n = std::stoul(out.head.substr(length + 16));
      out.body = take(n);
      out.whole = out.body.size() == n;
    } else {
      out.whole = wait_closed();
      out.body = std::exchange(in_, {});
    }
    return out;
  }

  RawResponse ask(std::string_view bytes) {
    send(bytes);
    return response();
  }

 private:
  void read_chunks(RawResponse& out) {
    for (;;) {
      const std::string line = take_line();
      if (line.empty()) return;
      const size_t n = std::stoul(line, nullptr, 16);
      const std::string chunk = take(n + 2);
      if (chunk.size() != n + 2 || !chunk.ends_with("\r\n")) return;
      if (n == 0) {
        out.whole = true;
        return;
      }
      out.body.append(chunk, 0, n);
    }
  }

  int fd_ = -1;
  bool timed_out_ = false;
  std::string in_;
};

}  // namespace hearth::net::test
