#include "text/grammar/arguments.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/limit_error.h"
#include "base/printable.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/text_dfa.h"

namespace hearth::text {

namespace grammar {
namespace {

using Rule = ArgumentNotation::Rule;

constexpr std::string_view kNullWord = "null";

const json::Value& types_of(Rule rule, bool tagged) {
  static const json::Value kText = json::parse(R"({"type": ["string"]})", "types"),
                           kTextOrNull = json::parse(R"({"type": ["string", "null"]})", "types"),
                           kMarked = json::parse(R"({"type": ["string", "array", "object"]})", "types"),
                           kMarkedOrNull = json::parse(R"({"type": ["string", "array", "object", "null"]})", "types");
  if (tagged) return rule == Rule::text ? kText : kTextOrNull;
  return rule == Rule::text ? kMarked : kMarkedOrNull;
}

std::vector<JsonNotation> notations(const ArgumentNotation& n) {
  if (n.form == ArgumentNotation::Form::marked)
    return {{.strings = JsonNotation::Strings::marked, .mark = n.mark, .never = {}}};
  if (n.section_open.empty()) return {{.mark = n.close, .never = {}}};
  return {{.mark = {}, .never = "<&"}, {.mark = n.section_close, .never = {}}};
}

class ArgumentCompiler {
 public:
  ArgumentCompiler(const json::Value& root, GrammarBuilder& builder, const ArgumentNotation& notation)
      : b_(builder), n_(notation), reader_(root, builder) {
    for (JsonNotation& one : notations(notation))
      values_.emplace_back(root, builder, JsonOptions{.doubles = true}, std::move(one));
  }

  Expr compile(const json::Value& schema) {
    const Expr all = object({{&schema}}, "$", 0);
    for (SchemaCompiler& values : values_) values.finish();
    return all;
  }

 private:
  // Texts of an argument that is a string: all, or those of an automaton.
  struct Texts {
    bool all = false, null = false;
    std::vector<std::function<Expr()>> some;
    std::string key;  // says the same as `some`
  };

  bool tagged() const { return n_.form == ArgumentNotation::Form::tagged; }
  Expr exact(Dfa dfa) { return b_.automaton(std::make_shared<const Dfa>(std::move(dfa))); }
  Dfa all_texts() { return b_.to_dfa(b_.repeat(b_.points(negated({}), Encoding::raw), 0), "a string"); }

  [[noreturn]] void too_deep(const std::string& path) const {
    fail_limit(kGrammarDepth, "the schema at {}: anyOf and oneOf lie more than {} deep", path, b_.limits().depth);
  }

  // The first anyOf or oneOf that is still to be chosen from.
  std::optional<std::vector<SchemaParts>> branches(const SchemaParts& flat, const std::string& path) {
    for (size_t i = 0; i < flat.size(); ++i) {
      if (!flat[i].any_of_done && flat[i].schema->get("anyOf")) return reader_.branches(flat, i, false, path);
      if (!flat[i].one_of_done && flat[i].schema->get("oneOf")) return reader_.branches(flat, i, true, path);
    }
    return std::nullopt;
  }

  Expr object(const SchemaParts& parts, const std::string& path, int depth) {
    if (depth > b_.limits().depth) too_deep(path);
    const std::optional<SchemaParts> flat = reader_.flattened(parts, path);
    if (!flat) return b_.choice({});
    if (const auto sets = branches(*flat, path)) {
      std::vector<Expr> choices;
      for (const SchemaParts& set : *sets) choices.push_back(object(set, path, depth + 1));
      return b_.choice(std::move(choices));
    }
    if (reader_.listed(*flat, path))
      fail(ErrorKind::invalid_argument, "the schema at {}: a tool's arguments as a list of constants", path);
    if (!flat->empty() && !(reader_.types(*flat, path) & kObject)) return b_.choice({});
    return members(*flat, path);
  }

  Expr members(const SchemaParts& parts, const std::string& path) {
    const std::set<std::string> required = reader_.required(parts, path);
    std::vector<JsonParts::Member> members;
    for (const std::string& name : reader_.names(parts, path)) {
      const std::string place = fmt::format("{}.properties.{}", path, printable(name, 60));
      const bool needed = required.contains(name);
      SchemaParts set = reader_.member(parts, &name, path);
      const bool spelled = !tagged() || n_.has_name(name);
      if (!spelled && needed)
        fail(ErrorKind::invalid_argument, "the schema at {}: a name that this family of calls cannot spell", place);
      if (!spelled || !reader_.flattened(set, place)) {
        if (needed) return b_.choice({});
        continue;
      }
      members.push_back({member(name, std::move(set), place), needed});
    }
    if (!tagged()) return values_[0].parts().members(members, std::nullopt);
    std::vector<Expr> all;
    for (const JsonParts::Member& one : members) all.push_back(one.required ? one.expr : b_.optional(one.expr));
    return b_.sequence(std::move(all));
  }

  Expr member(const std::string& name, SchemaParts set, const std::string& place) {
    const Rule rule = n_.rule(name);
    if (rule != Rule::json) set.push_back({&types_of(rule, tagged())});
    if (!tagged()) {
      JsonParts& parts = values_[0].parts();
      return b_.sequence({b_.literal(parts.name(name)), parts.colon(), values_[0].value(std::move(set), place)});
    }
    const Expr value = rule == Rule::json ? json_value(set, place) : text_value(set, rule, place);
    return b_.sequence({b_.literal(n_.before_key + name + n_.after_key), value, b_.literal(n_.after_close)});
  }

  // A value in JSON, up to and with the closing tag.
  Expr json_value(const SchemaParts& set, const std::string& place) {
    const Expr plain = values_[0].value(set, place);
    if (n_.section_open.empty()) {
      const Expr end = n_.line_break ? b_.optional(b_.literal("\n")) : b_.empty();
      return b_.sequence({plain, end, b_.literal(n_.close)});
    }
    const Expr section =
        b_.sequence({b_.literal(n_.section_open), values_[1].value(set, place), b_.literal(n_.section_close)});
    return b_.sequence({b_.choice({plain, section}), b_.literal(n_.close)});
  }

  // A string as it is, up to and with the closing tag.
  Expr text_value(const SchemaParts& set, Rule rule, const std::string& place) {
    Texts texts;
    collect(set, place, texts, 0);
    const bool other_null = rule == Rule::text_or_null && !texts.null;
    if (texts.all && !other_null) return b_.kept("text " + n_.close + n_.section_open, [&] { return any_text(); });
    const std::string key =
        fmt::format("texts {} {} {}{}\n{}", n_.close, rule == Rule::text_or_null, texts.all, texts.null, texts.key);
    return b_.kept(key, [&] { return some_text(texts, rule); });
  }

  void collect(const SchemaParts& parts, const std::string& path, Texts& texts, int depth) {
    if (depth > b_.limits().depth) too_deep(path);
    const std::optional<SchemaParts> flat = reader_.flattened(parts, path);
    if (!flat) return;
    if (const auto sets = branches(*flat, path)) {
      for (const SchemaParts& set : *sets) collect(set, path, texts, depth + 1);
      return;
    }
    if (const auto values = reader_.listed(*flat, path)) {
      for (const json::Value* value : *values) {
        if (!reader_.admits(*flat, *value, path)) continue;
        if (value->is_null()) texts.null = true;
        else texts.some.push_back([this, value] { return b_.literal(*value->string()); });
        texts.key += json::dump(*value) + "\n";
      }
      return;
    }
    const uint8_t types = reader_.types(*flat, path);
    texts.null |= (types & kNull) != 0;
    if (!(types & kString)) return;
    const SchemaReader::Counts length = reader_.counts(*flat, "minLength", "maxLength", path);
    if (length.max < length.min) return;
    const uint32_t longest = length.max == GrammarBuilder::kUnbounded ? length.min : length.max;
    if (longest > kMarkedLengthMax)
      fail(ErrorKind::invalid_argument,
           "schema keyword \"{}\" at {}: calls of this family hold strings to at most {} characters, not {}; with "
           "tool_grammar false they are not held to the schema",
           length.max == GrammarBuilder::kUnbounded ? "minLength" : "maxLength", path, kMarkedLengthMax, longest);
    std::string content;
    for (const SchemaPart& part : *flat)
      for (const char* keyword : {"pattern", "format"})
        if (const json::Value* v = part.schema->get(keyword)) content += keyword + json::dump(*v);
    if (content.empty() && !length.bounded()) {
      texts.all = true;
      return;
    }
    texts.key += fmt::format("{} {} {}\n", length.min, length.max, content);
    texts.some.push_back([this, flat = *flat, length, path] {
      return exact(reader_.bounded(reader_.contents(flat, Encoding::raw, path), length, Encoding::raw, path));
    });
  }

  // Any text up to the closing tag: one automaton for every argument.
  Expr any_text() {
    const Dfa all = b_.to_dfa(b_.sequence({exact(all_texts()), b_.literal(n_.close)}), "a string");
    Dfa plain = intersection(all, up_to_text(n_.close, b_.budget()), b_.budget());
    if (n_.section_open.empty()) return b_.apart(std::make_shared<const Dfa>(std::move(plain)));
    const Expr blanks = b_.regex("[ \\t\\r\\n]*");
    const Expr rest = b_.repeat(b_.bytes(ByteSet::all()), 0);
    const Dfa sections = b_.to_dfa(b_.sequence({blanks, b_.literal(n_.section_open), rest}), "a string");
    plain = difference(plain, sections, b_.budget());
    // A section's end counts where the closing tag follows it; elsewhere it is text, or another section joins on.
    const Expr end = b_.sequence({b_.literal(n_.section_close), blanks, b_.literal(n_.close)});
    const Dfa ended = first_match(b_.to_dfa(b_.sequence({rest, end}), "a string"));
    const Dfa inside = intersection(b_.to_dfa(b_.sequence({exact(all_texts()), end}), "a string"), ended, b_.budget());
    return b_.choice({b_.apart(std::make_shared<const Dfa>(std::move(plain))),
                      b_.sequence({b_.literal(n_.section_open), b_.apart(std::make_shared<const Dfa>(inside))})});
  }

  // These texts alone, where the notation can hold them.
  Expr some_text(const Texts& texts, Rule rule) {
    std::vector<Expr> parts;
    for (const auto& make : texts.some) parts.push_back(make());
    if (texts.all) parts.push_back(exact(all_texts()));
    Dfa some = b_.to_dfa(b_.choice(std::move(parts)), "a string");
    if (rule == Rule::text_or_null) {
      some = difference(some, literal_dfa(kNullWord), b_.budget());
      if (texts.null) some = b_.to_dfa(b_.choice({exact(std::move(some)), b_.literal(kNullWord)}), "a string or null");
    }
    return closed_text(some);
  }

  Expr closed_text(const Dfa& given) {
    Budget& budget = b_.budget();
    if (n_.section_open.empty()) {
      const Dfa texts = intersection(given, without_text(n_.close, budget), budget);
      if (!n_.line_break) return closed(exact(texts));
      const Dfa breaks = b_.to_dfa(b_.sequence({exact(all_texts()), b_.literal("\n")}), "a string");
      return closed(
          b_.choice({b_.sequence({exact(texts), b_.literal("\n")}), exact(difference(texts, breaks, budget))}));
    }
    Dfa plain = given;
    for (const char* c : {"<", "&"}) plain = intersection(plain, without_text(c, budget), budget);
    const Dfa inside = intersection(given, without_text(n_.section_close, budget), budget);
    return closed(b_.choice({exact(std::move(plain)),
                             b_.sequence({b_.literal(n_.section_open), exact(inside), b_.literal(n_.section_close)})}));
  }

  Expr closed(Expr texts) {
    Dfa dfa = b_.to_dfa(b_.sequence({texts, b_.literal(n_.close)}), "a string");
    return b_.apart(std::make_shared<const Dfa>(std::move(dfa)));
  }

  GrammarBuilder& b_;
  const ArgumentNotation& n_;
  SchemaReader reader_;
  std::deque<SchemaCompiler> values_;  // tagged with sections: outside of them, inside
};

}  // namespace
}  // namespace grammar

Expr GrammarBuilder::arguments(const json::Value& schema, const ArgumentNotation& notation) {
  return grammar::ArgumentCompiler(schema, *this, notation).compile(schema);
}

}  // namespace hearth::text
