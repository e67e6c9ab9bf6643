// UTF-8 as the Unicode standard has it (3.9, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
// All functions are pure and take any bytes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

// What a first byte announces: bytes of its character, and the bounds of the second one. A byte that begins none: 0.
struct Utf8Lead {
  uint8_t size = 0, low = 0x80, high = 0xBF;
};

inline constexpr std::array<Utf8Lead, 256> kUtf8Leads = [] {
  std::array<Utf8Lead, 256> leads{};
  for (size_t b = 0; b < 0x80; ++b) leads[b].size = 1;
  for (size_t b = 0xC2; b < 0xE0; ++b) leads[b].size = 2;
  for (size_t b = 0xE0; b < 0xF0; ++b) leads[b].size = 3;
  for (size_t b = 0xF0; b < 0xF5; ++b) leads[b].size = 4;
  leads[0xE0].low = 0xA0;
  leads[0xED].high = 0x9F;
  leads[0xF0].low = 0x90;
  leads[0xF4].high = 0x8F;
  return leads;
}();

inline const Utf8Lead& utf8_lead(char first) { return kUtf8Leads[static_cast<unsigned char>(first)]; }
inline bool continues_utf8(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// How far the first bytes of a text go: the size that its first byte announces (0: none), and how many bytes agree.
struct Utf8Start {
  size_t needed = 0, valid = 0;
  bool complete() const { return needed > 0 && valid == needed; }
};

inline Utf8Start utf8_start(std::string_view text) {
  if (text.empty()) return {};
  const Utf8Lead lead = utf8_lead(text[0]);
  if (lead.size < 2) return {lead.size, lead.size};
  const auto second = text.size() > 1 ? static_cast<unsigned char>(text[1]) : 0u;
  if (second < lead.low || second > lead.high) return {lead.size, 1};
  size_t valid = 2;
  while (valid < lead.size && valid < text.size() && continues_utf8(text[valid])) ++valid;
  return {lead.size, valid};
}

// The character that a text begins with, and its bytes; size 0: it begins with none.
struct Utf8Char {
  uint32_t value = 0, size = 0;
};

inline Utf8Char utf8_decode(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const Utf8Start start = utf8_start(text);
  if (!start.complete()) return {};
  uint32_t value = byte(0) & (0x7Fu >> start.needed);
  for (size_t i = 1; i < start.needed; ++i) value = value << 6 | (byte(i) & 0x3F);
  return {value, static_cast<uint32_t>(start.needed)};
}

// Bytes of the character that a text begins with; 0: it begins with none.
inline size_t utf8_prefix(std::string_view text) {
  const Utf8Start start = utf8_start(text);
  return start.complete() ? start.needed : 0;
}

bool is_utf8(std::string_view text);

// The longest part of at most bytes_max bytes that cuts no character.
std::string_view utf8_cut(std::string_view text, size_t bytes_max);

// `code_point` up to U+10FFFF.
void append_utf8(std::string& out, uint32_t code_point);

// Appends the text with each maximal part of a character that is none as one U+FFFD, as Python's
// bytes.decode(errors="replace") has it.
void append_repaired(std::string& out, std::string_view text);
std::string repaired(std::string_view text);

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace hearth
