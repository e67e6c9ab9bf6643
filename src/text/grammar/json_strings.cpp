// Strings and names under a notation.
#include <algorithm>

#include "base/error.h"
#include "text/grammar/json_parts.h"
#include "text/grammar/regex.h"
#include "text/grammar/text_dfa.h"

namespace hearth::text::grammar {

namespace {

constexpr size_t kBareNameMax = 64;

bool bare_byte(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return letter || (!first && ((c >= '0' && c <= '9') || c == '-' || c == '.'));
}

bool is_bare(const std::string& name) {
  if (name.empty() || name.size() > kBareNameMax) return false;
  for (size_t i = 0; i < name.size(); ++i)
    if (!bare_byte(name[i], i == 0)) return false;
  return true;
}

}  // namespace

Encoding JsonParts::encoding() const { return marked() ? Encoding::raw : Encoding::json; }

Expr JsonParts::enclosed(Expr content) { return b_.sequence({quote_, content, quote_}); }

std::string JsonParts::text(const std::string& string) const {
  if (marked() && string.find(notation_.mark) == std::string::npos) return notation_.mark + string + notation_.mark;
  const std::string quoted = json_quoted(string);
  if (marked()) return quoted;
  const bool holds_mark = !notation_.mark.empty() && quoted.find(notation_.mark) != std::string::npos;
  std::string out;
  for (const char c : quoted) {
    const bool escape = notation_.never.find(c) != std::string::npos || (holds_mark && c == notation_.mark.front());
    out += escape ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return out;
}

std::string JsonParts::name(const std::string& name) const { return marked() && is_bare(name) ? name : text(name); }

Expr JsonParts::marked_string(uint32_t min, uint32_t max) {
  Budget& budget = b_.budget();
  const Expr unit = marked() ? b_.points(negated({}), Encoding::raw) : b_.automaton(character_);
  const bool unbounded = max == GrammarBuilder::kUnbounded;
  if (min == 0 && unbounded) {
    // Up to the closing mark or quote: the same automaton wherever a string stands.
    const Dfa all = b_.to_dfa(b_.sequence({b_.repeat(unit, 0), quote_}), "a string");
    const Dfa rule = marked() ? up_to_text(notation_.mark, budget) : without_text(notation_.mark, budget);
    return b_.sequence({quote_, b_.apart(std::make_shared<const Dfa>(intersection(all, rule, budget)))});
  }
  if ((unbounded ? min : max) <= kMarkedLengthMax) {
    const Dfa all = b_.to_dfa(b_.repeat(unit, min, max), "a string of bounded length");
    const Dfa rule = without_text(notation_.mark, budget);
    return enclosed(b_.apart(std::make_shared<const Dfa>(intersection(all, rule, budget))));
  }
  // Longer ones are counted, and hold the mark's first character as an escape alone.
  ByteSet first;
  first.add(static_cast<uint8_t>(notation_.mark.front()));
  const Dfa character = difference(marked() ? json_character_dfa() : *character_, bytes_dfa(first), budget);
  const Expr content = b_.counted(std::make_shared<const Dfa>(character), min, max);
  return b_.sequence({b_.literal("\""), content, b_.literal("\"")});
}

Expr JsonParts::string(uint32_t min, uint32_t max) {
  if (max == 0) return enclosed(b_.empty());
  if (notation_.mark.empty()) return enclosed(b_.counted(character_, min, max));
  return b_.kept(fmt::format("{}string {} {}", same_parts_, min, max), [&] { return marked_string(min, max); });
}

Expr JsonParts::quoted(Expr content, std::string_view what) {
  if (notation_.mark.empty() && notation_.never.empty()) return enclosed(content);
  Dfa all = b_.to_dfa(content, what);
  if (!notation_.mark.empty()) all = intersection(all, without_text(notation_.mark, b_.budget()), b_.budget());
  for (const char c : notation_.never)
    all = intersection(all, without_text(std::string_view(&c, 1), b_.budget()), b_.budget());
  return enclosed(b_.automaton(std::make_shared<const Dfa>(std::move(all))));
}

Dfa JsonParts::bare_names() {
  return b_.to_dfa(b_.regex(fmt::format("[A-Za-z_][A-Za-z0-9_.\\-]{{0,{}}}", kBareNameMax - 1)), "a member's name");
}

Expr JsonParts::key(DfaPtr names) {
  if (!marked()) return quoted(b_.automaton(std::move(names)), "a member's name");
  return b_.automaton(std::make_shared<const Dfa>(intersection(*names, bare_names(), b_.budget())));
}

Expr JsonParts::other_key(const std::vector<std::string>& names, const std::vector<DfaPtr>& patterns) {
  if (names.empty() && patterns.empty())
    return marked() ? b_.kept("bare names", [&] { return b_.apart(std::make_shared<const Dfa>(bare_names())); })
                    : string();
  const auto make = [&] {
    std::vector<Expr> taken;
    for (const std::string& name : names) taken.push_back(b_.literal(marked() ? name : json_escaped(name)));
    for (const DfaPtr& pattern : patterns) taken.push_back(b_.automaton(pattern));
    const Dfa all =
        marked() ? bare_names() : b_.to_dfa(b_.repeat(b_.points(negated({}), encoding()), 0), "a member's name");
    return key(std::make_shared<const Dfa>(
        difference(all, b_.to_dfa(b_.choice(std::move(taken)), "the names of members"), b_.budget())));
  };
  if (!patterns.empty()) return make();
  std::string others = same_parts_ + "others";
  for (const std::string& name : names) others += " " + json_quoted(name);
  return b_.kept(others, make);
}

}  // namespace hearth::text::grammar
