// Text as a terminal shows it: grapheme clusters (UAX 29) and their widths in columns. Pure.
#pragma once
#include <cstddef>
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

}  // namespace hearth::cli
