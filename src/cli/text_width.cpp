#include "cli/text_width.h"

#include <utf8proc.h>

#include <algorithm>

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
    utf8proc_int32_t code = 0;
    const auto left = static_cast<utf8proc_ssize_t>(text.size() - at);
    utf8proc_ssize_t n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at, left, &code);
    if (n < 1) {
      n = 1;
      code = 0xFFFD;
    }
    const size_t end = at + static_cast<size_t>(n);
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

int utf8_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

std::string to_valid_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const int length = utf8_length(byte(at));
    // The second byte's range keeps out overlong forms, surrogates and codes beyond U+10FFFF.
    unsigned low = 0x80, high = 0xBF;
    if (byte(at) == 0xE0) low = 0xA0;
    if (byte(at) == 0xED) high = 0x9F;
    if (byte(at) == 0xF0) low = 0x90;
    if (byte(at) == 0xF4) high = 0x8F;
    int good = length == 0 ? 0 : 1;
    while (good > 0 && good < length && at + static_cast<size_t>(good) < text.size()) {
      const unsigned next = byte(at + static_cast<size_t>(good));
      if (next < low || next > high) break;
      low = 0x80;
      high = 0xBF;
      ++good;
    }
    if (length > 0 && good == length) out += text.substr(at, static_cast<size_t>(length));
    else out += kReplacement;
    at += static_cast<size_t>(std::max(good, 1));
  }
  return out;
}

}  // namespace hearth::cli
