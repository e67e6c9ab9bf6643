#include "text/tools/reasoning_meter.h"

#include "base/error.h"

namespace hearth::text {

ReasoningMeter::ReasoningMeter(AnswerOptions options)
    : close_(options.reasoning ? options.reasoning->close : ""), parser_(std::move(options), Random(0)) {
  HEARTH_CHECK(!close_.empty(), "a meter of reasoning without its markers");
}

void ReasoningMeter::push(std::string_view bytes) {
  const bool was_inside = inside();
  const size_t before = closing();
  parser_.push(bytes);
  if (!was_inside) return;
  if (inside()) {
    part_.push_back(bytes.size());
    part_bytes_ += bytes.size();
    size_t done = 0;
    while (done < part_.size() && (closing() == 0 || part_bytes_ > closing())) part_bytes_ -= part_[done++];
    part_.erase(part_.begin(), part_.begin() + static_cast<std::ptrdiff_t>(done));
    settled_ += static_cast<int64_t>(done);
    return;
  }
  // The marker is whole: it went on from the part, began with this token, or inside of it.
  const std::string_view close = close_;
  if (!bytes.starts_with(close.substr(before))) {
    settled_ += static_cast<int64_t>(part_.size());
    if (!bytes.starts_with(close)) ++settled_;
  }
  part_.clear();
  part_bytes_ = 0;
}

}  // namespace hearth::text
