#include "cli/text_width.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace hearth::cli {
namespace {

int width_of_codepoint(utf8proc_int32_t code) {
  if (code < 0x20 || code == 0x7F) return 2;
  return utf8proc_charwidth(code);
}

}  // namespace

std::vector<Cluster> clusters(std::string_view text) {
  std::vector<Cluster> found;
  utf8proc_int32_t previous = 0, state = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_decode(text.substr(at));
    const auto code = static_cast<utf8proc_int32_t>(c.size > 0 ? c.value : 0xFFFD);
    const size_t end = at + std::max<size_t>(c.size, 1);
    const bool begins = found.empty() || utf8proc_grapheme_break_stateful(previous, code, &state);
    const int width = code == '\n' ? 0 : width_of_codepoint(code);
    constexpr utf8proc_int32_t kEmojiStyle = 0xFE0F;
    if (begins) {
      found.push_back({at, end, std::min(width, 2)});
    } else {
      found.back().end = end;
      found.back().width = code == kEmojiStyle ? 2 : std::min(found.back().width + width, 2);
    }
    previous = code;
    at = end;
  }
  return found;
}

int width_of(std::string_view text) {
  int width = 0;
  for (const Cluster& cluster : clusters(text)) width += cluster.width;
  return width;
}

}  // namespace hearth::cli
