// Character classes of HTTP/1.1 (RFC 9110 section 5.6, RFC 9112), on bytes; no locale.
#pragma once
#include <string_view>

namespace hearth::net {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

// -1: not a digit.
constexpr int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

// tchar: what methods and header names are made of.
constexpr bool is_token_char(char c) {
  return is_digit(c) || is_letter(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
constexpr bool is_token(std::string_view text) {
  for (const char c : text)
    if (!is_token_char(c)) return false;
  return !text.empty();
}

// field-vchar, space and tab; bytes above 0x7F are opaque.
constexpr bool is_value_char(char c) {
  const auto u = static_cast<unsigned char>(c);
  return c == '\t' || (u >= 0x20 && u != 0x7F);
}

constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace hearth::net
