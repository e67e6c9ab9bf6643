#include "net/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.h"
#include "net/port_owner.h"

namespace hearth::net {

namespace {

constexpr int kBacklog = 1024;

[[noreturn]] void fail_io(const std::string& address, const char* call) {
  const int error = errno;
  if (error == EADDRINUSE) fail(ErrorKind::io, "{}: the port is in use by another process", address);
  fail(ErrorKind::io, "{}: {}: {}", address, call, std::strerror(error));
}

struct Resolved {
  sockaddr_storage address{};
  socklen_t size = 0;
  int family() const { return address.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

std::string address_text(const std::string& host, int port) {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Resolved resolve(const std::string& host, int port, int flags) {
  if (port < 0 || port > 65535) fail(ErrorKind::invalid_argument, "port is {}, expected 0 to 65535", port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) fail(ErrorKind::io, "{}: {}", address_text(host, port), gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  Resolved out;
  std::memcpy(&out.address, found->ai_addr, found->ai_addrlen);
  out.size = found->ai_addrlen;
  return out;
}

int port_of(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  if (name.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
  if (name.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(name).sin6_port);
  return 0;
}

// "127.0.0.1", "::1"; empty for a Unix socket.
std::string host_of(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  char host[NI_MAXHOST] = "";
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0 || name.ss_family == AF_UNIX ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&name), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return host;
}

// The path that a Unix socket is bound to; empty for another one.
std::string path_of(int fd) {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0 || name.sun_family != AF_UNIX) return {};
  return std::string(name.sun_path, strnlen(name.sun_path, sizeof name.sun_path));  // a full one has no end mark
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof out.sun_path || path.find('\0') != path.npos)
    fail(ErrorKind::io, "{}: a socket's path has 1 to {} bytes, this one {}", path, sizeof out.sun_path - 1,
         path.size());
  std::memcpy(out.sun_path, path.data(), path.size());
  return out;
}

int bind_unix(int fd, const sockaddr_un& address) {
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

// A socket file without a listener goes; anything else stays and is an error.
void remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat there{};
  if (lstat(path.c_str(), &there) != 0) return;  // gone meanwhile
  if (!S_ISSOCK(there.st_mode)) fail(ErrorKind::io, "{}: there is a file that is no socket", path);
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.get() < 0) fail_io(path, "socket");
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN)
    fail(ErrorKind::io, "{}: another process listens there", path);
  if (errno != ECONNREFUSED) fail_io(path, "connect");
  if (unlink(path.c_str()) != 0 && errno != ENOENT) fail_io(path, "unlink");
}

// One starter a folder at a time: between bind() and listen() a socket looks stale, and who has seen a stale one may
// only remove that one. Held until the descriptor is closed.
Descriptor lock_folder(const std::string& path) {
  constexpr std::chrono::milliseconds kPatience{5'000}, kPause{5};
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) fail_io(path, "open the folder");
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail_io(path, "lock the folder");
    if (std::chrono::steady_clock::now() > until)
      fail(ErrorKind::io, "{}: another process holds a lock on the folder for {} s", path, kPatience.count() / 1000);
    std::this_thread::sleep_for(kPause);
  }
  return fd;
}

void wait_connected(int fd, const std::string& address, std::chrono::milliseconds timeout) {
  pollfd wait{fd, POLLOUT, 0};
  const int ready = poll(&wait, 1, static_cast<int>(timeout.count()));
  if (ready == 0) fail(ErrorKind::io, "{}: no connection within {} ms", address, timeout.count());
  if (ready < 0) fail_io(address, "poll");
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == ECONNREFUSED) fail(ErrorKind::not_found, "{}: nobody listens there", address);
  if (error != 0) fail(ErrorKind::io, "{}: connect: {}", address, std::strerror(error));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Listener listen_tcp(const std::string& host, int port) {
  const Resolved address = resolve(host, port, AI_PASSIVE);
  const std::string text = address_text(host, port);
  Descriptor fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) fail_io(text, "socket");
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  for (const char* call : {"bind", "listen"}) {
    const bool binds = call[0] == 'b';
    if ((binds ? bind(fd.get(), address.get(), address.size) : listen(fd.get(), kBacklog)) == 0) continue;
    const int error = errno;
    if (error == EADDRINUSE)
      if (const std::string owner = owner_of_port(port); !owner.empty())
        fail(ErrorKind::io, "{}: the port is in use by {}", text, owner);
    errno = error;
    fail_io(text, call);
  }
  const int chosen = port_of(fd.get());
  return {.socket = std::move(fd), .address = address_text(host, chosen), .port = chosen};
}

Listener listen_unix(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) fail_io(path, "socket");
  const Descriptor alone = lock_folder(path);
  if (bind_unix(fd.get(), address) != 0) {
    if (errno != EADDRINUSE) fail_io(path, "bind");
    remove_stale(path, address);
    if (bind_unix(fd.get(), address) != 0) fail_io(path, "bind");
  }
  // Nobody can connect before listen(), so nobody connects under the wider mode.
  if (chmod(path.c_str(), 0600) != 0 || listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    unlink(path.c_str());
    errno = error;
    fail_io(path, "listen");
  }
  return {.socket = std::move(fd), .address = path, .unlink_path = path};
}

std::vector<Listener> inherited_listeners() {
  constexpr int kFirst = 3;
  std::vector<Listener> out;
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  if (pid != nullptr && count != nullptr && std::to_string(getpid()) == pid) {
    for (int fd = kFirst; fd < kFirst + std::atoi(count); ++fd) {
      Descriptor owner(fd);
      int listens = 0;
      socklen_t size = sizeof listens;
      if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
        fail(ErrorKind::io, "LISTEN_FDS: descriptor {} is no listening socket", fd);
      fcntl(fd, F_SETFD, FD_CLOEXEC);
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
      Listener listener{.socket = std::move(owner), .address = path_of(fd), .port = port_of(fd), .host = host_of(fd)};
      if (listener.port > 0) listener.address = address_text(listener.host, listener.port);
      out.push_back(std::move(listener));
    }
  }
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  return out;
}

Descriptor connect_tcp(const std::string& host, int port, std::chrono::milliseconds timeout) {
  const Resolved address = resolve(host, port, 0);
  const std::string text = address_text(host, port);
  Descriptor fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) fail_io(text, "socket");
  if (connect(fd.get(), address.get(), address.size) != 0) {
    if (errno == ECONNREFUSED) fail(ErrorKind::not_found, "{}: nobody listens there", text);
    if (errno != EINPROGRESS) fail_io(text, "connect");
    wait_connected(fd.get(), text, timeout);
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

Descriptor connect_unix(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail_io(path, "socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT) fail(ErrorKind::not_found, "{}: nobody listens there", path);
    fail_io(path, "connect");
  }
  return fd;
}

}  // namespace hearth::net
