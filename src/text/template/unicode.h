// The Unicode rules of Python's str that templates depend on: characters, white space, case, printability.
// All functions take well-formed UTF-8 (see `is_utf8`) and are pure.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::text::jinja {

char32_t next_point(std::string_view s, size_t& i);  // decodes at byte i and moves i behind it
size_t count_points(std::string_view s);
size_t byte_of_point(std::string_view s, size_t point);  // s.size() when the string is shorter

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable
bool is_alpha(char32_t c);
bool is_digit(char32_t c);  // decimal digits
bool is_word(char32_t c);   // may stand in an identifier
bool is_upper(char32_t c);
bool is_lower(char32_t c);

enum class Side { left, right, both };
std::string_view strip_space(std::string_view s, Side side);
// Drops any of the code points of `set` from the chosen ends.
std::string_view strip_points(std::string_view s, std::string_view set, Side side);

std::string to_upper(std::string_view s);
std::string to_lower(std::string_view s);
std::string capitalized(std::string_view s);  // str.capitalize
std::string titled(std::string_view s);       // str.title
std::string swapped_case(std::string_view s);

}  // namespace hearth::text::jinja
