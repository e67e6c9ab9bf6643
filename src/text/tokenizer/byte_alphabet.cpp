#include "text/tokenizer/byte_alphabet.h"

#include <fmt/format.h>

#include "text/tokenizer/unicode.h"

namespace hearth::text {

const std::array<uint16_t, 256>& byte_alphabet() {
  static const std::array<uint16_t, 256> table = [] {
    std::array<uint16_t, 256> t{};
    uint16_t next = 0x100;
    for (uint16_t b = 0; b < 256; ++b) {
      const bool itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      t[b] = itself ? b : next++;
    }
    return t;
  }();
  return table;
}

bool append_bytes_of_alphabet(std::string& out, std::string_view spelling) {
  static const std::array<int16_t, 0x144> inverse = [] {
    std::array<int16_t, 0x144> t;
    t.fill(-1);
    for (size_t b = 0; b < 256; ++b) t[byte_alphabet()[b]] = static_cast<int16_t>(b);
    return t;
  }();
  const size_t before = out.size();
  for (size_t at = 0; at < spelling.size();) {
    const unicode::CodePoint c = unicode::decode(spelling, at);
    if (c.value >= inverse.size() || inverse[c.value] < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(inverse[c.value]);
    at += c.size;
  }
  return true;
}

std::optional<std::string> bytes_of_alphabet(std::string_view spelling) {
  std::string out;
  out.reserve(spelling.size());
  if (!append_bytes_of_alphabet(out, spelling)) return std::nullopt;
  return out;
}

std::string to_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char b : bytes) unicode::append(out, byte_alphabet()[static_cast<unsigned char>(b)]);
  return out;
}

std::optional<uint8_t> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : piece.substr(3, 2)) {
    value *= 16;
    if (c >= '0' && c <= '9') value += static_cast<unsigned>(c - '0');
    else if (c >= 'A' && c <= 'F') value += static_cast<unsigned>(c - 'A' + 10);
    else if (c >= 'a' && c <= 'f') value += static_cast<unsigned>(c - 'a' + 10);
    else return std::nullopt;
  }
  return static_cast<uint8_t>(value);
}

std::string byte_piece(uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace hearth::text
