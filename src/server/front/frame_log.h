// The frames that a conversation has sent, numbered from 1 on, the last ones kept: a client that comes back is sent
// what it has missed (spec web 7). Values only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

class FrameLog {
 public:
  explicit FrameLog(size_t bytes_max) : bytes_max_(bytes_max) {}

  // `frame` is an object with members, without seq; as it is sent, with it.
  const std::string& add(std::string_view frame);
  int64_t last() const { return last_; }  // 0: none was sent
  size_t bytes() const { return bytes_; }
  // All behind frame number `seq`, oldest first; nullopt: not all of them are kept, or there was no such frame.
  std::optional<std::vector<std::string>> after(int64_t seq) const;

 private:
  const size_t bytes_max_;  // the last frame is kept whatever its size
  std::deque<std::string> frames_;
  size_t bytes_ = 0;
  int64_t last_ = 0;
};

}  // namespace hearth::server
