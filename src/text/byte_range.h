// A stretch of a text.
#pragma once
#include <cstddef>

namespace hearth::text {

struct ByteRange {
  size_t begin = 0, end = 0;  // bytes [begin, end)
  bool operator==(const ByteRange&) const = default;
};

}  // namespace hearth::text
