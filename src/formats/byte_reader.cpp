#include "formats/byte_reader.h"

namespace hearth::formats {

std::string printable(std::string_view text) {
  constexpr size_t kShown = 100;
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u >= 0x7f) out += fmt::format("\\x{:02x}", u);
    else out += c;
  }
  if (text.size() > kShown) out += "...";
  return out;
}

}  // namespace hearth::formats
