#include "server/front/frame_log.h"

#include <fmt/format.h>

namespace hearth::server {

const std::string& FrameLog::add(std::string_view frame) {
  frames_.push_back(fmt::format("{{\"seq\": {}, {}", ++last_, frame.substr(1)));
  bytes_ += frames_.back().size();
  while (bytes_ > bytes_max_ && frames_.size() > 1) {
    bytes_ -= frames_.front().size();
    frames_.pop_front();
  }
  return frames_.back();
}

std::optional<std::vector<std::string>> FrameLog::after(int64_t seq) const {
  const int64_t missing = last_ - seq;
  if (missing < 0 || missing > static_cast<int64_t>(frames_.size())) return std::nullopt;
  return std::vector<std::string>(frames_.end() - missing, frames_.end());
}

}  // namespace hearth::server
