#include "text/detokenizer.h"

#include "text/template/unicode.h"

namespace hearth::text {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

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
    const Utf8Prefix p = utf8_prefix(bytes);
    if (p.complete()) {
      out += bytes.substr(0, static_cast<size_t>(p.needed));
      bytes.remove_prefix(static_cast<size_t>(p.needed));
    } else if (p.needed > 0 && static_cast<size_t>(p.valid) == bytes.size()) {
      held_ = bytes;
      break;
    } else {
      out += kReplacement;
      bytes.remove_prefix(p.valid > 0 ? static_cast<size_t>(p.valid) : 1);
    }
  }
  return out;
}

std::string Detokenizer::finish() {
  const bool open = !held_.empty();
  held_.clear();
  return open ? std::string(kReplacement) : std::string();
}

}  // namespace hearth::text
