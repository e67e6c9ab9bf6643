// Sets of Unicode code points, and the bytes that spell their members. Internal to text/grammar.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/dfa.h"

namespace hearth::text::grammar {

struct PointRange {
  uint32_t lo, hi;
  auto operator<=>(const PointRange&) const = default;
};
using Points = std::vector<PointRange>;  // rising, disjoint, not touching, without surrogates

Points normalized(Points ranges);
Points negated(const Points& set);

Points digit_points();  // \d: Nd
Points word_points();   // \w of UTS 18
Points space_points();  // \s: White_Space
// \p{name}: a general category by its one or two letters ("L", "Lu"); null for another name.
std::optional<Points> category_points(std::string_view name);

// How a text stands in the answer: as its UTF-8, or inside a JSON string. There `"`, `\` and control characters have
// one spelling, an escape (\" \\ \b \f \n \r \t, else \u00XX), and all others are themselves.
enum class Encoding { raw, json };

// The spellings of one member; minimal and prefix-free.
Dfa points_dfa(const Points& set, Encoding encoding, Budget& budget);

// One character of any JSON string with every escape that JSON knows (RFC 8259, section 7); a surrogate escape only as
// half of a pair, which is one character.
Dfa json_character_dfa();

// The JSON string of a UTF-8 text with its quotes, spelled as Encoding::json says.
std::string json_quoted(std::string_view utf8);
std::string json_escaped(std::string_view utf8);  // without quotes

}  // namespace hearth::text::grammar
