// Frames of a WebSocket as bytes (RFC 6455 section 5): those of a client read strictly, those of a server written. Pure
// functions of bytes; fuzzed (tests/fuzz/net/websocket_frame.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::net {

// Codes of closes that the reader finds reasons for, and those that stand for none (section 7.4.1).
inline constexpr int kCloseProtocol = 1002, kCloseNoCode = 1005, kCloseAbnormal = 1006, kCloseNotUtf8 = 1007,
                     kCloseTooBig = 1009;

// Whether a close frame may carry it.
bool is_close_code(int code);

// Reads one client's frames. A frame that is too large is refused when its header is there; what a header announces is
// never allocated before it has come.
class FrameReader {
 public:
  // Of one message; its fragments together.
  explicit FrameReader(size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  enum class Result : uint8_t {
    need_more,  // `bytes` is used up
    message,    // take(): text, or bytes where is_text() is false
    ping,       // take(): what the pong repeats
    pong,
    close,  // code(): the client's, or kCloseNoCode; take(): its reason
    failed  // code(): why this end closes; the reader is done
  };
  // Takes bytes off the front of `bytes` up to the end of the next frame that is something. Text is valid UTF-8.
  Result feed(std::string_view& bytes);

  void set_message_bytes_max(size_t bytes) { message_bytes_max_ = bytes; }  // from the next frame on

  std::string take();
  bool is_text() const { return is_text_; }
  int code() const { return code_; }

 private:
  static constexpr size_t kHeaderMax = 14, kControlMax = 125;
  // Empty fragments cost a client nothing and are of no use to anyone.
  static constexpr size_t kFragmentsMax = 16'384;

  Result fail(int code);
  bool read_header(std::string_view& bytes);
  int check_header();  // 0, or why it is refused
  Result end_of_frame();

  size_t message_bytes_max_;
  std::string header_, message_, control_, taken_;
  uint64_t left_ = 0;  // of the frame's payload
  size_t used_ = 0;    // of it, for the mask
  unsigned char mask_[4] = {};
  int opcode_ = 0, code_ = 0;
  size_t fragments_ = 0;  // of the message under way; 0: there is none
  bool in_payload_ = false, last_ = false, is_text_ = false, message_is_text_ = false, failed_ = false;
};

enum class Opcode : uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// A whole frame of a server: not masked.
std::string frame_of(Opcode opcode, std::string_view payload);
// Only its header, where the payload is long.
std::string frame_header(Opcode opcode, size_t payload_bytes);
std::string close_frame(int code, std::string_view reason);

// Sec-WebSocket-Accept of a key (section 4.2.2); empty: the key is not 16 bytes in base64.
std::string accept_of(std::string_view key);

}  // namespace hearth::net
