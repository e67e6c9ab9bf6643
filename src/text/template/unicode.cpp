#include "text/template/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"
#include "text/template/case_table.h"

namespace hearth::text::jinja {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

enum class Case { upper, lower, title };

void append_cased(std::string& out, char32_t c, Case to) {
  const auto mapped = [&](auto begin, auto end) {
    const auto it = std::lower_bound(begin, end, c, [](const LongCase& row, char32_t v) { return row.from < v; });
    if (it == end || it->from != c) return false;
    for (const char32_t t : it->to)
      if (t != 0) append_utf8(out, t);
    return true;
  };
  const auto point = static_cast<utf8proc_int32_t>(c);
  switch (to) {
    case Case::upper:
      if (!mapped(std::begin(kLongUpper), std::end(kLongUpper)))
        append_utf8(out, static_cast<char32_t>(utf8proc_toupper(point)));
      return;
    case Case::title:
      if (!mapped(std::begin(kLongTitle), std::end(kLongTitle)))
        append_utf8(out, static_cast<char32_t>(utf8proc_totitle(point)));
      return;
    case Case::lower:
      if (c == 0x130) out += "i\xCC\x87";
      else append_utf8(out, static_cast<char32_t>(utf8proc_tolower(point)));
  }
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT; }

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019 || c == 0x2027;
  }
}

// Capital sigma becomes the final form behind a cased letter and before none (Unicode 3.13, Final_Sigma).
bool is_final_sigma(std::string_view s, size_t begin, size_t end) {
  bool after_cased = false;
  for (size_t i = begin; i > 0 && !after_cased;) {
    do --i;
    while (i > 0 && continues_utf8(s[i]));
    size_t at = i;
    const char32_t c = next_point(s, at);
    if (is_case_ignorable(c)) continue;
    if (!is_cased(c)) return false;
    after_cased = true;
  }
  if (!after_cased) return false;
  for (size_t i = end; i < s.size();) {
    const char32_t c = next_point(s, i);
    if (is_case_ignorable(c)) continue;
    return !is_cased(c);
  }
  return true;
}

// Lower case of the code point at bytes [begin, end) of s, in the context of s.
void append_lower(std::string& out, std::string_view s, size_t begin, size_t end, char32_t c) {
  if (c == 0x3A3) append_utf8(out, is_final_sigma(s, begin, end) ? 0x3C2 : 0x3C3);
  else append_cased(out, c, Case::lower);
}

}  // namespace

char32_t next_point(std::string_view s, size_t& i) {
  const Utf8Char c = utf8_decode(s.substr(i));
  i += std::max<size_t>(c.size, 1);
  return c.value;
}

size_t count_points(std::string_view s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return !continues_utf8(c); }));
}

size_t byte_of_point(std::string_view s, size_t point) {
  size_t i = 0;
  for (; i < s.size(); ++i)
    if (!continues_utf8(s[i]) && point-- == 0) break;
  return i;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_word(char32_t c) {
  const auto k = category(c);
  return c == '_' || is_alpha(c) || is_digit(c) || k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC ||
         k == UTF8PROC_CATEGORY_NL;
}

namespace {

template <class Drop>
std::string_view strip(std::string_view s, Side side, const Drop& drop) {
  if (side != Side::right)
    while (!s.empty()) {
      size_t i = 0;
      if (!drop(next_point(s, i))) break;
      s.remove_prefix(i);
    }
  if (side != Side::left)
    while (!s.empty()) {
      size_t i = s.size() - 1;
      while (i > 0 && continues_utf8(s[i])) --i;
      size_t at = i;
      if (!drop(next_point(s, at))) break;
      s = s.substr(0, i);
    }
  return s;
}

}  // namespace

std::string_view strip_space(std::string_view s, Side side) { return strip(s, side, is_space); }

std::string_view strip_points(std::string_view s, std::string_view set, Side side) {
  std::u32string points;
  for (size_t i = 0; i < set.size();) points += next_point(set, i);
  std::sort(points.begin(), points.end());
  return strip(s, side, [&](char32_t c) { return std::binary_search(points.begin(), points.end(), c); });
}

std::string to_upper(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) append_cased(out, next_point(s, i), Case::upper);
  return out;
}

std::string to_lower(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    const size_t begin = i;
    const char32_t c = next_point(s, i);
    append_lower(out, s, begin, i, c);
  }
  return out;
}

std::string capitalized(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    const size_t begin = i;
    const char32_t c = next_point(s, i);
    if (begin == 0) append_cased(out, c, Case::title);
    else append_lower(out, s, begin, i, c);
  }
  return out;
}

std::string titled(std::string_view s) {
  std::string out;
  bool in_word = false;
  for (size_t i = 0; i < s.size();) {
    const size_t begin = i;
    const char32_t c = next_point(s, i);
    if (in_word) append_lower(out, s, begin, i, c);
    else append_cased(out, c, Case::title);
    in_word = is_cased(c);
  }
  return out;
}

std::string swapped_case(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    const size_t begin = i;
    const char32_t c = next_point(s, i);
    if (is_upper(c)) append_lower(out, s, begin, i, c);
    else if (is_lower(c)) append_cased(out, c, Case::upper);
    else append_utf8(out, c);
  }
  return out;
}

}  // namespace hearth::text::jinja
