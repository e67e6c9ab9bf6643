#include "server/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
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

// How many files a frame comes with.
size_t files_of(const Frame& frame) {
  if (frame.kind != FrameKind::adapter_mount && frame.kind != FrameKind::adapter_describe) return 0;
  const json::Value* names = frame.body.get("files");
  if (!names || !names->array()) fail(ErrorKind::corrupt_file, "a frame of an adapter without files");
  return names->array()->size();
}

// Room for the descriptors of one message.
struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kFrameFilesMax)] = {};
};

}  // namespace

bool is_request(FrameKind kind) {
  return kind == FrameKind::submit || (kind >= FrameKind::embed && kind <= FrameKind::adapter_describe);
}

Frame taken_frame(uint64_t id) {
  json::Object body;
  body["id"] = id;
  return {FrameKind::taken, std::move(body)};
}

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
  Frame frame{static_cast<FrameKind>(kind),
              json::parse(bytes.substr(at + kHead, length - 1), "a frame", {.depth = kFrameDepthMax})};
  if (!frame.body.object()) fail(ErrorKind::corrupt_file, "a frame of kind {} whose body is no object", kind);
  at += 4 + length;
  return frame;
}

Wire::Wire(int fd, Files files) : fd_(fd), files_(files) {}

Wire::~Wire() { ::close(fd_); }

void Wire::send(const Frame& frame) {
  std::string bytes;
  append_frame(bytes, frame);
  send_bytes(bytes);
}

void Wire::send_bytes(std::string_view frames) {
  const std::lock_guard lock(sending_);
  send_all(frames);
}

void Wire::send_all(std::string_view frames) {
  while (!frames.empty()) {
    const ssize_t n = ::send(fd_, frames.data(), frames.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::io, "the wire between front and worker: {}", std::strerror(errno));
    frames.remove_prefix(static_cast<size_t>(n));
  }
}

// The descriptors go with the first byte; the receiver has them before the frame is whole.
void Wire::send_files(std::string_view frame, std::span<const Descriptor> files) {
  HEARTH_CHECK(!frame.empty() && !files.empty() && files.size() <= kFrameFilesMax, "{} files", files.size());
  const std::lock_guard lock(sending_);
  iovec first{.iov_base = const_cast<char*>(frame.data()), .iov_len = 1};
  Control control;
  msghdr message{};
  message.msg_iov = &first;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int) * files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const int fd = files[i].get();
    std::memcpy(CMSG_DATA(head) + i * sizeof fd, &fd, sizeof fd);
  }
  ssize_t n = 0;
  while ((n = ::sendmsg(fd_, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  if (n < 0) fail(ErrorKind::io, "the wire between front and worker: {}", std::strerror(errno));
  send_all(frame.substr(1));
}

// As recv(); files that came along wait for their frame. Where none are taken the kernel closes them.
ssize_t Wire::receive_some(std::span<char> buffer) {
  if (files_ == Files::refused) return ::recv(fd_, buffer.data(), buffer.size(), 0);
  iovec all{.iov_base = buffer.data(), .iov_len = buffer.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &all;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t n = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
      received_files_.emplace_back(fd);
    }
  }
  if (message.msg_flags & MSG_CTRUNC)
    fail(ErrorKind::corrupt_file, "a message with more than {} files", kFrameFilesMax);
  return n;
}

void Wire::hand_files(Frame& frame) {
  const size_t count = files_of(frame);
  if (count > received_files_.size())
    fail(ErrorKind::corrupt_file, "a frame names {} files, {} came", count, received_files_.size());
  for (size_t i = 0; i < count; ++i) {
    frame.files.push_back(std::move(received_files_.front()));
    received_files_.pop_front();
  }
  if (at_ == received_.size() && !received_files_.empty())
    fail(ErrorKind::corrupt_file, "{} files came that no frame names", received_files_.size());
}

std::optional<Frame> Wire::receive() {
  for (;;) {
    if (std::optional<Frame> frame = take_frame(received_, at_)) {
      hand_files(*frame);
      if (at_ == received_.size()) received_.clear(), at_ = 0;
      return frame;
    }
    received_.erase(0, at_);
    at_ = 0;
    // A sleep in recv() ends whenever the other side has read something of ours; one in poll() does not.
    pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, -1) < 0 && errno != EINTR) return std::nullopt;
    char buffer[64 << 10];
    const ssize_t n = receive_some(buffer);
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
