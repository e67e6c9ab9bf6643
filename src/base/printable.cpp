#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace hearth {

// The table of well-formed sequences of the Unicode standard (3.9, table 3-7).
size_t utf8_prefix(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; };
  const auto in = [&](size_t i, int low, int high) { return byte(i) >= low && byte(i) <= high; };
  const int first = byte(0);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return in(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool second = first == 0xe0 ? in(1, 0xa0, 0xbf) : first == 0xed ? in(1, 0x80, 0x9f) : in(1, 0x80, 0xbf);
    return second && in(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool second = first == 0xf0 ? in(1, 0x90, 0xbf) : first == 0xf4 ? in(1, 0x80, 0x8f) : in(1, 0x80, 0xbf);
    return second && in(2, 0x80, 0xbf) && in(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

std::string printable_line(std::string_view text, size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    const size_t n = utf8_prefix(text);
    const auto first = static_cast<uint8_t>(text[0]);
    const bool control = n == 1 ? first < 0x20 || first == 0x7f : n == 2 && first == 0xc2 && (text[1] & 0xe0) == 0x80;
    std::string piece;
    if (n > 0 && !control) piece = text.substr(0, n);
    else
      for (const char c : text.substr(0, n > 0 ? n : 1)) piece += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    if (out.size() + piece.size() > bytes_max) return out + "...";
    out += piece;
    text.remove_prefix(n > 0 ? n : 1);
  }
  return out;
}

}  // namespace hearth
