#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace hearth {

std::string printable(std::string_view text, size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = utf8_decode(text);
    const std::string_view whole = text.substr(0, std::max<size_t>(c.size, 1));
    const bool control = c.value < 0x20 || (c.value >= 0x7f && c.value < 0xa0);  // a broken byte's value is 0
    std::string piece;
    if (!control) piece = whole;
    else
      for (const char byte : whole) piece += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    if (out.size() + piece.size() > bytes_max) return out + "...";
    out += piece;
    text.remove_prefix(whole.size());
  }
  return out;
}

}  // namespace hearth
