#include "net/websocket_frame.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/base64.h"
#include "base/digest.h"
#include "base/utf8.h"

namespace hearth::net {
namespace {

constexpr int kLast = 0x80, kReserved = 0x70, kMasked = 0x80, kControl = 8;
constexpr size_t kLength16 = 126, kLength64 = 127;

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int byte_of(char c) { return static_cast<unsigned char>(c); }

uint64_t big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint64_t>(byte_of(c));
  return value;
}

int digit_of(char hex) { return hex <= '9' ? hex - '0' : hex - 'a' + 10; }

}  // namespace

bool is_close_code(int code) {
  return (code >= 1000 && code <= 1013 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);
}

FrameReader::Result FrameReader::fail(int code) {
  failed_ = true;
  code_ = code;
  message_ = control_ = {};
  return Result::failed;
}

// True: the header is whole.
bool FrameReader::read_header(std::string_view& bytes) {
  size_t wanted = 2;
  const auto have = [&] {
    const size_t n = std::min(wanted - header_.size(), bytes.size());
    header_.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    return header_.size() == wanted;
  };
  if (header_.size() < 2 && !have()) return false;
  const auto length = static_cast<size_t>(byte_of(header_[1]) & ~kMasked);
  const size_t more = length == kLength16 ? 2 : length == kLength64 ? 8 : 0;
  wanted = 2 + more + ((byte_of(header_[1]) & kMasked) != 0 ? sizeof mask_ : 0);
  if (header_.size() < wanted && !have()) return false;
  const std::string_view rest = std::string_view(header_).substr(2);
  left_ = more > 0 ? big_endian(rest.substr(0, more)) : length;
  for (size_t i = 0; i < sizeof mask_; ++i)
    mask_[i] = i < rest.size() - more ? static_cast<unsigned char>(rest[more + i]) : 0;
  used_ = 0;
  return true;
}

int FrameReader::check_header() {
  const int first = byte_of(header_[0]);
  opcode_ = first & 15;
  last_ = (first & kLast) != 0;
  const auto length = static_cast<size_t>(byte_of(header_[1]) & ~kMasked);
  const bool minimal = length < kLength16 || left_ > (length == kLength16 ? kControlMax : 0xFFFF);
  if ((first & kReserved) != 0 || (byte_of(header_[1]) & kMasked) == 0 || !minimal || left_ >> 63 != 0)
    return kCloseProtocol;
  if ((opcode_ & kControl) != 0)
    return opcode_ <= static_cast<int>(Opcode::pong) && last_ && left_ <= kControlMax ? 0 : kCloseProtocol;
  const bool continues = opcode_ == static_cast<int>(Opcode::continuation);
  if (opcode_ > static_cast<int>(Opcode::binary) || continues != (fragments_ > 0)) return kCloseProtocol;
  const size_t room = message_bytes_max_ - std::min(message_.size(), message_bytes_max_);
  if (left_ > room || ++fragments_ > kFragmentsMax) return kCloseTooBig;
  if (!continues) message_is_text_ = opcode_ == static_cast<int>(Opcode::text);
  return 0;
}

FrameReader::Result FrameReader::end_of_frame() {
  in_payload_ = false;
  header_.clear();
  if ((opcode_ & kControl) == 0) {
    if (!last_) return Result::need_more;
    fragments_ = 0;
    is_text_ = message_is_text_;
    if (is_text_ && !is_utf8(message_)) return fail(kCloseNotUtf8);
    taken_ = std::exchange(message_, {});
    return Result::message;
  }
  taken_ = std::exchange(control_, {});
  if (opcode_ == static_cast<int>(Opcode::ping)) return Result::ping;
  if (opcode_ == static_cast<int>(Opcode::pong)) return Result::pong;
  code_ = kCloseNoCode;
  if (taken_.empty()) return Result::close;
  if (taken_.size() < 2) return fail(kCloseProtocol);
  code_ = static_cast<int>(big_endian(std::string_view(taken_).substr(0, 2)));
  taken_.erase(0, 2);
  if (!is_close_code(code_)) return fail(kCloseProtocol);
  return is_utf8(taken_) ? Result::close : fail(kCloseNotUtf8);
}

FrameReader::Result FrameReader::feed(std::string_view& bytes) {
  if (failed_) return Result::failed;
  for (;;) {
    if (!in_payload_) {
      if (!read_header(bytes)) return Result::need_more;
      if (const int code = check_header()) return fail(code);
      in_payload_ = true;
    }
    std::string& into = (opcode_ & kControl) != 0 ? control_ : message_;
    const size_t n = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
    const size_t begin = into.size();
    into.append(bytes.substr(0, n));
    for (size_t i = 0; i < n; ++i)
      into[begin + i] = static_cast<char>(byte_of(into[begin + i]) ^ mask_[(used_ + i) & 3]);
    bytes.remove_prefix(n);
    used_ += n;
    left_ -= n;
    if (left_ > 0) return Result::need_more;
    if (const Result result = end_of_frame(); result != Result::need_more) return result;
  }
}

std::string FrameReader::take() { return std::exchange(taken_, {}); }

std::string frame_header(Opcode opcode, size_t payload_bytes) {
  std::string out(1, static_cast<char>(kLast | static_cast<int>(opcode)));
  const auto put = [&](int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(payload_bytes >> shift & 0xFF);
  };
  if (payload_bytes < kLength16) {
    out += static_cast<char>(payload_bytes);
  } else if (payload_bytes <= 0xFFFF) {
    out += static_cast<char>(kLength16);
    put(2);
  } else {
    out += static_cast<char>(kLength64);
    put(8);
  }
  return out;
}

std::string frame_of(Opcode opcode, std::string_view payload) {
  return frame_header(opcode, payload.size()).append(payload);
}

std::string close_frame(int code, std::string_view reason) {
  std::string payload = {static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)};
  return frame_of(Opcode::close, payload.append(reason));
}

std::string accept_of(std::string_view key) {
  constexpr size_t kKeyBytes = 24;
  const bool is_key = key.size() == kKeyBytes && key.ends_with("==") &&
                      std::all_of(key.begin(), key.end() - 2, [](char c) { return kBase64.find(c) != kBase64.npos; });
  if (!is_key) return "";
  Digest digest(Digest::Kind::sha1);
  digest.add(key);
  digest.add("258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  const std::string hex = digest.hex();
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(digit_of(hex[i]) * 16 + digit_of(hex[i + 1]));
  return base64(std::as_bytes(std::span(bytes)));
}

}  // namespace hearth::net
