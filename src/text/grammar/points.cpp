#include "text/grammar/points.h"

#include <utf8proc.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "text/grammar/grammar.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text::grammar {

using unicode::kCodePoints;

Points normalized(Points ranges) {
  Points out;
  std::sort(ranges.begin(), ranges.end());
  const auto put = [&](uint32_t lo, uint32_t hi) {
    if (lo > hi) return;
    if (!out.empty() && lo <= out.back().hi + 1) out.back().hi = std::max(out.back().hi, hi);
    else out.push_back({lo, hi});
  };
  for (const PointRange& r : ranges) {
    put(r.lo, std::min(r.hi, 0xD7FFu));
    put(std::max(r.lo, 0xE000u), std::min(r.hi, kCodePoints - 1));
  }
  return out;
}

Points negated(const Points& set) {
  Points out;
  uint32_t from = 0;
  for (const PointRange& r : set) {
    if (r.lo > from) out.push_back({from, r.lo - 1});
    from = r.hi + 1;
  }
  if (from < kCodePoints) out.push_back({from, kCodePoints - 1});
  return normalized(std::move(out));
}

namespace {

Points points_where(const std::function<bool(uint32_t)>& holds) {
  Points out;
  for (uint32_t c = 0; c < kCodePoints; ++c)
    if (holds(c)) {
      if (!out.empty() && out.back().hi + 1 == c) out.back().hi = c;
      else out.push_back({c, c});
    }
  return normalized(std::move(out));
}

// The bytes of a code point, length by the highest of its range.
int encode(uint32_t c, uint8_t (&out)[4]) {
  std::string text;
  unicode::append(text, c);
  for (size_t i = 0; i < text.size(); ++i) out[i] = static_cast<uint8_t>(text[i]);
  return static_cast<int>(text.size());
}

// Ranges of UTF-8 sequences whose bytes vary independently: split where lengths change, then at multiples of 64, 64^2
// and 64^3.
void add_utf8(Nfa& nfa, PointRange range, uint32_t from, uint32_t to) {
  std::vector<PointRange> open{range};
  while (!open.empty()) {
    PointRange r = open.back();
    open.pop_back();
    bool cut = false;
    for (const uint32_t last : {0x7Fu, 0x7FFu, 0xFFFFu})
      if (!cut && r.lo <= last && last < r.hi) {
        open.push_back({last + 1, r.hi});
        open.push_back({r.lo, last});
        cut = true;
      }
    for (int i = 1; i < 4 && !cut && r.hi > 0x7F; ++i) {
      const uint32_t low = (1u << (6 * i)) - 1;
      if ((r.lo & ~low) == (r.hi & ~low)) continue;
      if ((r.lo & low) != 0) {
        open.push_back({(r.lo | low) + 1, r.hi});
        open.push_back({r.lo, r.lo | low});
        cut = true;
      } else if ((r.hi & low) != low) {
        open.push_back({r.hi & ~low, r.hi});
        open.push_back({r.lo, (r.hi & ~low) - 1});
        cut = true;
      }
    }
    if (cut) continue;
    uint8_t lo[4], hi[4];
    const int size = encode(r.lo, lo);
    encode(r.hi, hi);
    uint32_t at = from;
    for (int i = 0; i < size; ++i) {
      const uint32_t next = i + 1 == size ? to : nfa.add_state();
      nfa.edge(at, lo[i], hi[i], next);
      at = next;
    }
  }
}

void add_text(Nfa& nfa, std::string_view text, uint32_t from, uint32_t to) {
  uint32_t at = from;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t next = i + 1 == text.size() ? to : nfa.add_state();
    nfa.edge(at, static_cast<uint8_t>(text[i]), static_cast<uint8_t>(text[i]), next);
    at = next;
  }
}

constexpr std::string_view kHex = "0123456789abcdef";

// "" when the character stands for itself.
std::string json_escape(uint32_t c) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  if (c >= 0x20) return "";
  return std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
}

// An automaton of one character has no more states than its NFA.
Dfa one_character(const Nfa& nfa, uint32_t start, uint32_t accept, Budget& budget) {
  std::optional<Dfa> dfa = nfa.determinize(start, accept, ~0u, budget);
  HEARTH_CHECK(dfa.has_value());
  return minimized(*dfa, budget);
}

}  // namespace

Points digit_points() {
  static const Points points = points_where(
      [](uint32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND; });
  return points;
}

Points word_points() {
  static const Points points = points_where([](uint32_t c) { return (unicode::classes(c) & unicode::kWord) != 0; });
  return points;
}

Points space_points() {
  static const Points points = points_where([](uint32_t c) { return (unicode::classes(c) & unicode::kSpace) != 0; });
  return points;
}

std::optional<Points> category_points(std::string_view name) {
  // All of them in one pass over the code points.
  static const std::map<std::string, Points, std::less<>> known = [] {
    std::map<std::string, Points, std::less<>> made;
    utf8proc_category_t last = UTF8PROC_CATEGORY_CN;
    Points* points = nullptr;
    for (uint32_t c = 0; c < kCodePoints; ++c) {
      const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
      if (points == nullptr || category != last) {
        points = &made[utf8proc_category_string(static_cast<utf8proc_int32_t>(c))];
        points->push_back({c, c});
        last = category;
      }
      points->back().hi = c;
    }
    for (auto& [two, set] : made) set = normalized(std::move(set));
    return made;
  }();
  Points out;
  for (const auto& [two, set] : known)
    if (two == name || (name.size() == 1 && two.starts_with(name))) out.insert(out.end(), set.begin(), set.end());
  if (out.empty()) return std::nullopt;
  return normalized(std::move(out));
}

Dfa points_dfa(const Points& set, Encoding encoding, Budget& budget) {
  Nfa nfa;
  const uint32_t start = nfa.add_state(), accept = nfa.add_state();
  for (const PointRange& r : set) {
    if (encoding == Encoding::raw) {
      add_utf8(nfa, r, start, accept);
      continue;
    }
    uint32_t from = r.lo;
    for (uint32_t c = r.lo; c <= std::min<uint32_t>(r.hi, '\\'); ++c) {
      const std::string escape = json_escape(c);
      if (escape.empty()) continue;
      if (from < c) add_utf8(nfa, {from, c - 1}, start, accept);
      add_text(nfa, escape, start, accept);
      from = c + 1;
    }
    if (from <= r.hi) add_utf8(nfa, {from, r.hi}, start, accept);
  }
  return one_character(nfa, start, accept, budget);
}

Dfa json_character_dfa() {
  Nfa nfa;
  const uint32_t start = nfa.add_state(), accept = nfa.add_state();
  for (const PointRange& r : normalized({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kCodePoints - 1}}))
    add_utf8(nfa, r, start, accept);
  const uint32_t escape = nfa.add_state();
  nfa.edge(start, '\\', '\\', escape);
  for (const char c : std::string_view("\"\\/bfnrt"))
    nfa.edge(escape, static_cast<uint8_t>(c), static_cast<uint8_t>(c), accept);
  const auto hex = [&](uint32_t from, std::string_view digits, uint32_t to) {
    for (const char c : digits) nfa.edge(from, static_cast<uint8_t>(c), static_cast<uint8_t>(c), to);
  };
  constexpr std::string_view kAll = "0123456789abcdefABCDEF";
  const auto tail = [&](uint32_t from, int digits, uint32_t to) {
    for (int i = 0; i < digits; ++i) {
      const uint32_t next = i + 1 == digits ? to : nfa.add_state();
      hex(from, kAll, next);
      from = next;
    }
  };
  const uint32_t first = nfa.add_state(), second = nfa.add_state(), after_d = nfa.add_state();
  nfa.edge(escape, 'u', 'u', first);
  hex(first, "0123456789abcefABCEF", second);
  tail(second, 3, accept);
  hex(first, "dD", after_d);
  const uint32_t plain = nfa.add_state(), high = nfa.add_state(), pair = nfa.add_state();
  hex(after_d, "01234567", plain);
  tail(plain, 2, accept);
  hex(after_d, "89abAB", high);
  tail(high, 2, pair);
  const uint32_t backslash = nfa.add_state(), u = nfa.add_state(), d = nfa.add_state(), low = nfa.add_state();
  nfa.edge(pair, '\\', '\\', backslash);
  nfa.edge(backslash, 'u', 'u', u);
  hex(u, "dD", d);
  hex(d, "cdefCDEF", low);
  tail(low, 2, accept);
  Budget budget(GrammarLimits{}.work);
  return one_character(nfa, start, accept, budget);
}

std::string json_escaped(std::string_view utf8) {
  std::string out;
  for (const char c : utf8) {
    const std::string escape = json_escape(static_cast<uint8_t>(c));
    if (escape.empty()) out += c;
    else out += escape;
  }
  return out;
}

std::string json_quoted(std::string_view utf8) { return '"' + json_escaped(utf8) + '"'; }

}  // namespace hearth::text::grammar
