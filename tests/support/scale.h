// Repetitions of a test: HEARTH_TEST_SCALE in (0, 1] shrinks them where each costs more (sanitized builds).
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace hearth::test {

inline double scale() {
  const char* text = std::getenv("HEARTH_TEST_SCALE");
  const double value = text ? std::atof(text) : 1.0;
  return value > 0 && value <= 1 ? value : 1.0;
}

// At least 1.
inline int64_t scaled(int64_t count) {
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(count) * scale()));
}

}  // namespace hearth::test
