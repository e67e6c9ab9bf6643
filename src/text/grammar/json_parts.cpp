#include "text/grammar/json_parts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <variant>

#include "base/error.h"
#include "text/grammar/regex.h"

namespace hearth::text::grammar {

JsonParts::JsonParts(GrammarBuilder& builder, const JsonOptions& options, JsonNotation notation)
    : b_(builder),
      notation_(std::move(notation)),
      doubles_(options.doubles),
      same_parts_(
          fmt::format("{} {} {} {} {} ", options.any_whitespace, doubles_, marked(), notation_.mark, notation_.never)),
      character_(std::make_shared<const Dfa>(json_character_dfa())) {
  quote_ = b_.literal(marked() ? notation_.mark : "\"");
  if (!notation_.never.empty()) {
    ByteSet never;
    for (const char c : notation_.never) never.add(static_cast<uint8_t>(c));
    character_ = std::make_shared<const Dfa>(difference(*character_, bytes_dfa(never), b_.budget()));
  }
  if (options.any_whitespace) {
    ByteSet set;
    for (const char c : std::string_view(" \t\r\n")) set.add(static_cast<uint8_t>(c));
    space_ = b_.repeat(b_.bytes(set), 0, kWhitespaceMax);
    comma_ = b_.sequence({b_.literal(","), space_});
    colon_ = b_.sequence({space_, b_.literal(":"), space_});
  } else {
    space_ = b_.empty();
    comma_ = b_.sequence({b_.literal(","), b_.optional(b_.literal(" "))});
    colon_ = b_.sequence({b_.literal(":"), b_.optional(b_.literal(" "))});
  }
}

Expr JsonParts::constant(const json::Value& value) {
  // Texts and values still to be written, the next one last.
  std::vector<std::variant<const json::Value*, Expr>> open{&value};
  std::vector<Expr> parts;
  std::string text;
  const auto flush = [&] {
    if (!text.empty()) parts.push_back(b_.literal(text));
    text.clear();
  };
  while (!open.empty()) {
    const auto item = open.back();
    open.pop_back();
    b_.budget().spend(4);
    if (const Expr* e = std::get_if<Expr>(&item)) {
      flush();
      parts.push_back(*e);
      continue;
    }
    const json::Value& v = *std::get<const json::Value*>(item);
    if (const std::string* s = v.string()) text += this->text(*s);
    else if (const json::Array* a = v.array()) {
      text += '[';
      open.push_back(b_.literal("]"));
      if (a->size() == 0) open.push_back(space_);
      for (size_t i = a->size(); i-- > 0;) {
        open.push_back(space_);
        open.push_back(&(*a)[i]);
        open.push_back(i > 0 ? comma_ : space_);
      }
    } else if (const json::Object* o = v.object()) {
      text += '{';
      open.push_back(b_.literal("}"));
      if (o->members.empty()) open.push_back(space_);
      for (size_t i = o->members.size(); i-- > 0;) {
        open.push_back(space_);
        open.push_back(&o->members[i].second);
        open.push_back(colon_);
        open.push_back(b_.literal(name(o->members[i].first)));
        open.push_back(i > 0 ? comma_ : space_);
      }
    } else {
      text += json::dump(v);
    }
  }
  flush();
  return b_.sequence(std::move(parts));
}

// Both hold each other: while one is made, its rule stands for it.
Expr JsonParts::any() {
  if (any_) return b_.call(*any_);
  return b_.kept(same_parts_ + "any", [&] {
    any_ = b_.rule("any JSON value");
    const Expr any = b_.call(*any_), object = this->object();
    b_.define(*any_, b_.choice({string(), number({}), b_.literal("true"), b_.literal("false"), b_.literal("null"),
                                object, elements({}, any, 0, GrammarBuilder::kUnbounded)}));
    return any;
  });
}

Expr JsonParts::object() {
  if (object_) return b_.call(*object_);
  return b_.kept(same_parts_ + "object", [&] {
    object_ = b_.rule("any JSON object");
    b_.define(*object_, members({}, b_.sequence({other_key({}, {}), colon_, any()})));
    return b_.call(*object_);
  });
}

Expr JsonParts::members(const std::vector<Member>& members, std::optional<Expr> extra) {
  const Expr close = b_.literal("}");
  if (extra) extra = b_.sequence({*extra, space_});
  // What follows a member; each tail is a part of the one before.
  std::vector<Expr> tails(members.size() + 1);
  tails.back() = extra ? b_.sequence({b_.repeat(b_.sequence({comma_, *extra}), 0), close}) : close;
  for (size_t i = members.size(); i-- > 0;) {
    const Expr next = b_.sequence({comma_, members[i].expr, space_});
    tails[i] = b_.sequence({members[i].required ? next : b_.optional(next), tails[i + 1]});
  }
  std::vector<Expr> firsts;
  size_t i = 0;
  for (; i < members.size(); ++i) {
    firsts.push_back(b_.sequence({members[i].expr, space_, tails[i + 1]}));
    if (members[i].required) break;
  }
  if (i == members.size()) {
    if (extra) firsts.push_back(b_.sequence({*extra, tails.back()}));
    firsts.push_back(close);
  }
  return b_.sequence({b_.literal("{"), space_, b_.choice(std::move(firsts))});
}

Expr JsonParts::elements(const std::vector<Expr>& heads, std::optional<Expr> rest, uint32_t min, uint32_t max) {
  const Expr open = b_.sequence({b_.literal("["), space_}), close = b_.literal("]");
  if (rest) rest = b_.sequence({*rest, space_});
  if (max < min) return b_.choice({});
  const auto n = static_cast<uint32_t>(std::min<size_t>(heads.size(), max));
  const bool unbounded = max == GrammarBuilder::kUnbounded;
  // Behind element i, from the last one on.
  Expr tail = close;
  if (rest && n == heads.size() && max > n) {
    const uint32_t owed = min > n ? min - n : 0, left = unbounded ? max : max - n;
    if (n > 0) {
      tail = b_.sequence({b_.repeat(b_.sequence({comma_, *rest}), owed, left), close});
    } else {
      const Expr more = b_.repeat(b_.sequence({comma_, *rest}), owed > 0 ? owed - 1 : 0, unbounded ? max : left - 1);
      const Expr some = b_.sequence({*rest, more, close});
      return b_.sequence({open, min > 0 ? some : b_.choice({some, close})});
    }
  } else if (min > n) {
    return b_.choice({});
  }
  for (uint32_t i = n; i-- > 0;) {
    const Expr with = i > 0 ? b_.sequence({comma_, heads[i], space_, tail}) : b_.sequence({heads[i], space_, tail});
    tail = i >= min ? b_.choice({with, close}) : with;
  }
  return b_.sequence({open, tail});
}

}  // namespace hearth::text::grammar
