// Text that came from outside, fit for a terminal and for JSON.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

// Bytes of the well-formed UTF-8 character that the text begins with; 0: it begins with none.
size_t utf8_prefix(std::string_view text);

// One line of at most bytes_max bytes and "...": control characters (C0, DEL, C1) and bytes that are no UTF-8 as \xNN.
std::string printable_line(std::string_view text, size_t bytes_max = 2000);

}  // namespace hearth
