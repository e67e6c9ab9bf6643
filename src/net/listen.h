// Sockets that listen, and connect, with the system's calls alone.
#pragma once
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::net {

// Owns a file descriptor; closes it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Listener {
  Descriptor socket;          // non-blocking, close-on-exec, listening
  std::string address;        // host:port or the path, for messages
  int port = 0;               // 0: a Unix socket
  std::string unlink_path{};  // a socket file to remove at the end
  std::string host{};         // numeric, of an inherited TCP socket
};

// On the first address that `host` stands for; port 0: the system chooses one. Throws Error{io} with the address and
// the reason; for a port in use it says so. Error{invalid_argument} for a port outside 0..65535.
Listener listen_tcp(const std::string& host, int port);

// A socket file with mode 0600. A file left over by a dead process is replaced: one that is a socket on which nobody
// listens. Throws Error{io} with the path.
Listener listen_unix(const std::string& path);

// The sockets that a service manager handed to this process (LISTEN_PID, LISTEN_FDS), close-on-exec from now on; the
// variables are taken out of the environment. Call before threads start.
std::vector<Listener> inherited_listeners();

// Blocking sockets. Throws Error{io}; Error{not_found} when nobody listens there.
Descriptor connect_tcp(const std::string& host, int port, std::chrono::milliseconds timeout);
Descriptor connect_unix(const std::string& path);

}  // namespace hearth::net
