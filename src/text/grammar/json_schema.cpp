#include "text/grammar/json_schema.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "text/grammar/regex.h"

namespace hearth::text {

namespace grammar {

Expr SchemaCompiler::compile(const json::Value& schema) {
  const Expr root = value({{&schema}}, "$");
  finish();
  return root;
}

void SchemaCompiler::finish() {
  while (!pending_.empty()) {
    const Pending p = std::move(pending_.front());
    pending_.pop_front();
    b_.define(p.rule, body(p.parts, p.path));
  }
}

// A call of the rule of these parts, which is made later if it is new.
Expr SchemaCompiler::value(SchemaParts parts, const std::string& path) {
  for (SchemaPart& part : parts)
    if (!part.expanded) part.schema = reader_.target(part.schema, path);
  if (parts.empty()) return parts_.any();
  SchemaParts key = parts;  // the same set in another order is the same rule; members keep the order of the first
  std::sort(key.begin(), key.end());
  key.erase(std::unique(key.begin(), key.end()), key.end());
  b_.budget().spend(static_cast<int64_t>(8 + parts.size() + path.size() / 8));
  const auto found = rules_.find(key);
  if (found != rules_.end()) return b_.call(found->second);
  const RuleId rule = b_.rule(path);
  rules_.emplace(std::move(key), rule);
  pending_.push_back({rule, std::move(parts), path});
  return b_.call(rule);
}

Expr SchemaCompiler::body(const SchemaParts& given, const std::string& path) {
  const std::optional<SchemaParts> flat = reader_.flattened(given, path);
  if (!flat) return nothing();
  if (flat->empty()) return parts_.any();
  for (size_t i = 0; i < flat->size(); ++i) {
    const SchemaPart& part = (*flat)[i];
    if (!part.any_of_done && part.schema->get("anyOf")) return branches(*flat, i, false, path);
    if (!part.one_of_done && part.schema->get("oneOf")) return branches(*flat, i, true, path);
  }
  if (const auto values = reader_.listed(*flat, path)) return listed(*flat, *values, path);
  const uint8_t types = reader_.types(*flat, path);
  std::vector<Expr> choices;
  if (types & kNull) choices.push_back(b_.literal("null"));
  if (types & kBoolean) choices.push_back(b_.choice({b_.literal("true"), b_.literal("false")}));
  if (types & (kInteger | kNumber)) {
    NumberLimits limits = reader_.number_limits(*flat, path);
    limits.integer = !(types & kNumber);
    choices.push_back(parts_.number(limits));
  }
  if (types & kString) choices.push_back(string(*flat, path));
  if (types & kArray) choices.push_back(array(*flat, path));
  if (types & kObject) choices.push_back(object(*flat, path));
  return b_.choice(std::move(choices));
}

Expr SchemaCompiler::branches(const SchemaParts& parts, size_t part, bool one_of, const std::string& path) {
  const std::string place = path + (one_of ? ".oneOf" : ".anyOf");
  std::vector<SchemaParts> sets = reader_.branches(parts, part, one_of, path);
  std::vector<Expr> choices;
  for (size_t i = 0; i < sets.size(); ++i)
    choices.push_back(value(std::move(sets[i]), fmt::format("{}[{}]", place, i)));
  return b_.choice(std::move(choices));
}

Expr SchemaCompiler::listed(const SchemaParts& parts, const std::vector<const json::Value*>& values,
                            const std::string& path) {
  std::vector<Expr> choices;
  for (const json::Value* v : values)
    if (reader_.admits(parts, *v, path)) choices.push_back(parts_.constant(*v));
  return b_.choice(std::move(choices));
}

Expr SchemaCompiler::string(const SchemaParts& parts, const std::string& path) {
  const SchemaReader::Counts length = reader_.counts(parts, "minLength", "maxLength", path);
  if (length.max < length.min) return nothing();
  const std::vector<Expr> contents = reader_.contents(parts, parts_.encoding(), path);
  if (contents.empty()) return parts_.string(length.min, length.max);
  const std::string what = fmt::format("the pattern or format of the string at {}", path);
  if (contents.size() == 1 && !length.bounded()) return parts_.quoted(contents[0], what);
  if (const auto counted = b_.as_counted(contents[0]); counted && contents.size() == 1) {
    const uint32_t min = std::max(counted->min, length.min), max = std::min(counted->max, length.max);
    if (max < min) return nothing();
    return parts_.quoted(b_.repeat(b_.automaton(counted->unit), min, max), what);
  }
  Dfa all = reader_.bounded(contents, length, parts_.encoding(), path);
  return parts_.quoted(b_.automaton(std::make_shared<const Dfa>(std::move(all))), what);
}

Expr SchemaCompiler::array(const SchemaParts& parts, const std::string& path) {
  const SchemaReader::Counts length = reader_.counts(parts, "minItems", "maxItems", path);
  size_t heads = 0;
  for (const SchemaPart& part : parts)
    if (const json::Array* list = SchemaReader::heads(part)) heads = std::max(heads, list->size());
  std::vector<Expr> firsts;
  const auto element = [&](size_t i, const std::string& place) -> std::optional<Expr> {
    const SchemaParts set = reader_.element(parts, i, path);
    if (!reader_.flattened(set, place)) return std::nullopt;
    return value(set, place);
  };
  for (size_t i = 0; i < heads; ++i) {
    const std::optional<Expr> e = element(i, fmt::format("{}.prefixItems[{}]", path, i));
    if (!e) return parts_.elements(firsts, std::nullopt, length.min, length.max);
    firsts.push_back(*e);
  }
  return parts_.elements(firsts, element(heads, path + ".items"), length.min, length.max);
}

Expr SchemaCompiler::object(const SchemaParts& parts, const std::string& path) {
  std::vector<std::string> patterns;
  for (const SchemaPart& part : parts)
    if (const json::Value* v = part.schema->get("patternProperties"))
      for (const json::Member& m : reader_.object(*v, path + ".patternProperties"))
        if (std::find(patterns.begin(), patterns.end(), m.first) == patterns.end()) patterns.push_back(m.first);
  const std::set<std::string> required = reader_.required(parts, path);
  const std::vector<std::string> names = reader_.names(parts, path);

  std::vector<JsonParts::Member> members;
  for (const std::string& name : names) {
    const std::string place = fmt::format("{}.properties.{}", path, printable(name, 60));
    const SchemaParts set = reader_.member(parts, &name, path);
    const bool needed = required.contains(name);
    if (!reader_.flattened(set, place)) {
      if (needed) return nothing();
      continue;
    }
    const Expr key = b_.literal(parts_.name(name));
    members.push_back({b_.sequence({key, parts_.colon(), value(set, place)}), needed});
  }

  std::vector<Expr> extras;
  std::vector<DfaPtr> taken;
  for (const std::string& pattern : patterns) {
    const std::string place = fmt::format("{}.patternProperties.{}", path, printable(pattern, 60));
    const std::string what = fmt::format("the pattern at {}", place);
    Dfa key = regex_dfa(b_, pattern, {.encoding = parts_.encoding(), .search = true, .what = what});
    for (size_t i = 0; i < taken.size(); ++i)
      if (intersection(key, *taken[i], b_.budget()).states() > 0)
        fail(ErrorKind::invalid_argument,
             "schema keyword \"patternProperties\" at {}: the patterns {} and {} share names, which is not supported",
             path, printable(pattern, 60), printable(patterns[i], 60));
    taken.push_back(std::make_shared<const Dfa>(key));
    if (!names.empty()) {
      std::vector<Expr> literals;
      for (const std::string& name : names)
        literals.push_back(b_.literal(parts_.encoding() == Encoding::raw ? name : json_escaped(name)));
      key = difference(key, b_.to_dfa(b_.choice(std::move(literals)), what), b_.budget());
    }
    SchemaParts set;
    for (const SchemaPart& part : parts) {
      const json::Value* own = part.schema->get("patternProperties");
      const json::Value* other = part.schema->get("additionalProperties");
      if (const json::Value* v = own ? own->get(pattern) : nullptr) set.push_back({v});
      else if (other) set.push_back({other});
    }
    if (!reader_.flattened(set, place)) continue;
    const Expr names_of_it = parts_.key(std::make_shared<const Dfa>(std::move(key)));
    extras.push_back(b_.sequence({names_of_it, parts_.colon(), value(set, place)}));
  }
  const SchemaParts rest = reader_.member(parts, nullptr, path);
  const std::string place = path + ".additionalProperties";
  if (reader_.flattened(rest, place))
    extras.push_back(b_.sequence({parts_.other_key(names, taken), parts_.colon(), value(rest, place)}));
  return parts_.members(members, extras.empty() ? std::nullopt : std::optional(b_.choice(std::move(extras))));
}

}  // namespace grammar

Expr GrammarBuilder::json_schema(const json::Value& schema, const JsonOptions& options) {
  return grammar::SchemaCompiler(schema, *this, options).compile(schema);
}

Expr GrammarBuilder::json_object(const JsonOptions& options) { return grammar::JsonParts(*this, options).object(); }

}  // namespace hearth::text
