#include "base/utf8.h"

#include <algorithm>

namespace hearth {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = utf8_prefix(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string_view utf8_cut(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && continues_utf8(text[bytes_max])) --bytes_max;
  return text.substr(0, bytes_max);
}

void append_utf8(std::string& out, uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

void append_repaired(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const Utf8Start start = utf8_start(text);
    const size_t size = std::max<size_t>(start.valid, 1);
    out += start.complete() ? text.substr(0, size) : kReplacement;
    text.remove_prefix(size);
  }
}

std::string repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_repaired(out, text);
  return out;
}

}  // namespace hearth
