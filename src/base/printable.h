// Text that came from outside, fit for a terminal and for an error sentence.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

inline constexpr size_t kNameBytesMax = 100, kSentenceBytesMax = 2000;

// One line of at most bytes_max bytes and "...": control characters (C0, DEL, C1) and bytes that are no UTF-8 as \xNN.
std::string printable(std::string_view text, size_t bytes_max = kNameBytesMax);

}  // namespace hearth
