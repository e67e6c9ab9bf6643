#include "server/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hearth::server {
namespace {

bool known(uint8_t kind) {
  const auto within = [&](FrameKind first, FrameKind last) {
    return kind >= static_cast<uint8_t>(first) && kind <= static_cast<uint8_t>(last);
  };
  return within(FrameKind::load, FrameKind::drain) || within(FrameKind::loaded, FrameKind::reply);
}

}  // namespace

void append_frame(std::string& out, const Frame& frame) {
  const std::string body = json::dump(frame.body);
  if (body.size() + 1 > kFrameBytesMax)
    fail(ErrorKind::invalid_argument, "a frame of {} bytes is beyond the limit of {}", body.size() + 1, kFrameBytesMax);
  const auto length = static_cast<uint32_t>(body.size() + 1);
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(length >> shift));
  out.push_back(static_cast<char>(frame.kind));
  out += body;
}

std::optional<Frame> take_frame(std::string_view bytes, size_t& at) {
  constexpr size_t kHead = 5;
  if (bytes.size() - at < kHead) return std::nullopt;
  uint32_t length = 0;
  for (size_t i = 0; i < 4; ++i) length |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  if (length == 0 || length > kFrameBytesMax)
    fail(ErrorKind::corrupt_file, "a frame of {} bytes: expected 1 to {}", length, kFrameBytesMax);
  const auto kind = static_cast<uint8_t>(bytes[at + 4]);
  if (!known(kind)) fail(ErrorKind::corrupt_file, "a frame of unknown kind {}", kind);
  if (bytes.size() - at - 4 < length) return std::nullopt;
  Frame frame{static_cast<FrameKind>(kind), json::parse(bytes.substr(at + kHead, length - 1), "a frame")};
  if (!frame.body.object()) fail(ErrorKind::corrupt_file, "a frame of kind {} whose body is no object", kind);
  at += 4 + length;
  return frame;
}

Wire::Wire(int fd) : fd_(fd) {}

Wire::~Wire() { ::close(fd_); }

void Wire::send(const Frame& frame) {
  std::string bytes;
  append_frame(bytes, frame);
  send_bytes(bytes);
}

void Wire::send_bytes(std::string_view frames) {
  const std::lock_guard lock(sending_);
  while (!frames.empty()) {
    const ssize_t n = ::send(fd_, frames.data(), frames.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::io, "the wire between front and worker: {}", std::strerror(errno));
    frames.remove_prefix(static_cast<size_t>(n));
  }
}

std::optional<Frame> Wire::receive() {
  for (;;) {
    if (std::optional<Frame> frame = take_frame(received_, at_)) {
      if (at_ == received_.size()) received_.clear(), at_ = 0;
      return frame;
    }
    received_.erase(0, at_);
    at_ = 0;
    // A sleep in recv() ends whenever the other side has read something of ours; one in poll() does not.
    pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, -1) < 0 && errno != EINTR) return std::nullopt;
    char buffer[64 << 10];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    received_.append(buffer, static_cast<size_t>(n));
  }
}

void Wire::shut_down() { ::shutdown(fd_, SHUT_RDWR); }

WirePair make_wire_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    fail(ErrorKind::io, "no socket pair for a worker: {}", std::strerror(errno));
  return {fds[0], fds[1]};
}

}  // namespace hearth::server
