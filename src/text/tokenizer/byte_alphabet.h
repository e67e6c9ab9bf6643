// The byte alphabet of GPT-2: every byte is written as one printable character (! to ~, U+00A1 to U+00AC, U+00AE to
// U+00FF stand for themselves; the other 68 bytes, in order, are U+0100 to U+0143).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::text {

// Code point of each byte.
const std::array<uint16_t, 256>& byte_alphabet();

// The bytes that a spelling in the alphabet stands for; nothing when a character is outside of the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view spelling);
// Appends them; false, and nothing is appended, when a character is outside of the alphabet.
bool append_bytes_of_alphabet(std::string& out, std::string_view spelling);

// The spelling of bytes in the alphabet.
std::string to_alphabet(std::string_view bytes);

// The byte of "<0xNN>", two hexadecimal digits; nothing for any other spelling.
std::optional<uint8_t> byte_of_piece(std::string_view piece);
std::string byte_piece(uint8_t byte);  // "<0x0A>"

}  // namespace hearth::text
