#include "text/detokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace hearth::text {

std::string Detokenizer::push(std::string_view bytes) {
  std::string joined;
  if (!held_.empty()) {
    joined = std::move(held_);
    held_.clear();
    joined += bytes;
    bytes = joined;
  }
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Start start = utf8_start(bytes);
    if (!start.complete() && start.valid == bytes.size()) {
      held_ = bytes;
      break;
    }
    const size_t size = std::max<size_t>(start.valid, 1);
    out += start.complete() ? bytes.substr(0, size) : kReplacement;
    bytes.remove_prefix(size);
  }
  return out;
}

std::string Detokenizer::finish() {
  const bool open = !held_.empty();
  held_.clear();
  return open ? std::string(kReplacement) : std::string();
}

}  // namespace hearth::text
