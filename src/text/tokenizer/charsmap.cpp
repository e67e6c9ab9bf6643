#include "text/tokenizer/charsmap.h"

#include "base/error.h"

namespace hearth::text {

CharsmapTable::CharsmapTable(std::string_view table, std::string_view what) {
  const auto u32 = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(table[at + i])) << (8 * i);
    return value;
  };
  if (table.size() < 4)
    fail(ErrorKind::corrupt_file, "{}: character map of {} bytes, at least 4 needed", what, table.size());
  const uint32_t size = u32(0);
  if (size == 0 || size % 4 != 0 || size > table.size() - 4)
    fail(ErrorKind::corrupt_file, "{}: character map of {} bytes claims a trie of {}", what, table.size(), size);
  units_.resize(size / 4);
  for (size_t i = 0; i < units_.size(); ++i) units_[i] = u32(4 + 4 * i);
  replacements_ = table.substr(4 + size);
  // A bound on what one character may grow to; the longest of NFKC is 33 bytes.
  constexpr size_t kLongest = 1024;
  size_t begin = 0;
  while (begin < replacements_.size()) {
    const size_t end = replacements_.find('\0', begin);
    if (end == std::string::npos || end - begin > kLongest)
      fail(ErrorKind::corrupt_file, "{}: replacement at {} of the character map {}", what, begin,
           end == std::string::npos ? "has no end" : "is longer than 1024 bytes");
    begin = end + 1;
  }
}

std::optional<CharsmapTable::Match> CharsmapTable::find(std::string_view text, bool longest) const {
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  std::optional<Match> found;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xFF)) != byte) break;
    node ^= offset(unit);
    if (node >= units_.size()) break;
    if (unit >> 8 & 1) {
      const size_t at = units_[node] & 0x7FFFFFFF;
      if (at >= replacements_.size()) break;
      found = Match{i + 1, std::string_view(replacements_.data() + at)};
      if (!longest) break;
    }
  }
  return found;
}

}  // namespace hearth::text
