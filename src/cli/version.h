// What this build is.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace hearth::cli {

inline constexpr std::string_view kVersionText = "0.1.0";  // as in CMakeLists.txt; tests/cli compares the two

std::string_view
commit();  // "0123456789ab", with "+" where files differ from it; "unknown"; made by cmake/Commit.cmake
std::string_view compiler();    // "gcc 12.2.0", "clang 19.1.7"
std::string_view build_type();  // "release", or "debug" with assertions and without optimisation

struct Licence {
  std::string_view name, version, licence, use;
};
std::span<const Licence> licences();  // of everything linked in, our own first

}  // namespace hearth::cli
