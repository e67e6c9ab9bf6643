// Text as a terminal shows it: grapheme clusters (UAX 29) and their widths in columns. Pure.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {

struct Cluster {
  size_t begin = 0, end = 0;  // bytes
  int width = 0;              // 0, 1 or 2 columns; a control character counts as its two-column form "^X"
};

// `text` must be valid UTF-8. Every line feed is a cluster of its own.
std::vector<Cluster> clusters(std::string_view text);

int width_of(std::string_view text);  // sum over its clusters

// `text` with every maximal invalid byte sequence replaced by one U+FFFD (Unicode 15, section 3.9).
std::string to_valid_utf8(std::string_view text);

// Bytes of the UTF-8 sequence that begins with `lead`: 1 to 4, or 0 for a byte that begins none.
int utf8_length(unsigned char lead);

}  // namespace hearth::cli
