#include "cli/version.h"

#include <array>

#define HEARTH_TEXT_OF(x) #x
#define HEARTH_TEXT(x) HEARTH_TEXT_OF(x)

namespace hearth::cli {

std::string_view compiler() {
#if defined(__clang__)
  return "clang " HEARTH_TEXT(__clang_major__) "." HEARTH_TEXT(__clang_minor__) "." HEARTH_TEXT(__clang_patchlevel__);
#else
  return "gcc " HEARTH_TEXT(__GNUC__) "." HEARTH_TEXT(__GNUC_MINOR__) "." HEARTH_TEXT(__GNUC_PATCHLEVEL__);
#endif
}

std::string_view build_type() {
#if defined(__OPTIMIZE__)
  return "release";
#else
  return "debug";
#endif
}

std::span<const Licence> licences() {
  static constexpr std::array<Licence, 8> kLicences = {{
      {"hearth", kVersionText, "Apache-2.0", "this program"},
      {"Boost.JSON", "1.81.0", "BSL-1.0", "JSON"},
      {"OpenSSL", "3.0", "Apache-2.0", "SHA-256, SHA-1"},
      {"PCRE2", "10.42", "BSD-3-Clause", "unknown regular expressions of tokenizers"},
      {"utf8proc", "2.8.0", "MIT and Unicode-DFS-2016", "Unicode forms and widths"},
      {"fmt", "9.1.0", "MIT", "formatting"},
      {"CLI11", "2.1.2", "BSD-3-Clause", "command line"},
      {"libstdc++, libgcc", "12", "GPL-3.0 with GCC Runtime Library Exception", "C++ runtime"},
  }};
  return kLicences;
}

}  // namespace hearth::cli
