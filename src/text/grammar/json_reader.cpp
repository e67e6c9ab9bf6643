#include <algorithm>
#include <array>
#include <cmath>

#include "base/limit_error.h"
#include "base/printable.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/regex.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text::grammar {

namespace {

// Keywords that bind one kind of value, with the types of that kind.
constexpr std::array<std::pair<std::string_view, uint8_t>, 18> kTyped{{
    {"minLength", kString},
    {"maxLength", kString},
    {"pattern", kString},
    {"format", kString},
    {"minimum", kNumber | kInteger},
    {"maximum", kNumber | kInteger},
    {"exclusiveMinimum", kNumber | kInteger},
    {"exclusiveMaximum", kNumber | kInteger},
    {"multipleOf", kNumber | kInteger},
    {"items", kArray},
    {"prefixItems", kArray},
    {"additionalItems", kArray},
    {"minItems", kArray},
    {"maxItems", kArray},
    {"properties", kObject},
    {"required", kObject},
    {"additionalProperties", kObject},
    {"patternProperties", kObject},
}};
constexpr std::array<std::string_view, 8> kGeneral{"type",  "enum",  "const", "nullable",
                                                   "anyOf", "oneOf", "allOf", "$ref"};
// Keywords that say nothing of a value.
constexpr std::array<std::string_view, 20> kNotes{
    "title",   "description", "default",      "examples",      "example",          "$schema",         "$id",
    "id",      "$comment",    "deprecated",   "readOnly",      "writeOnly",        "$defs",           "definitions",
    "$anchor", "xml",         "externalDocs", "discriminator", "contentMediaType", "propertyOrdering"};

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::optional<uint8_t> typed(std::string_view name) {
  for (const auto& [keyword, types] : kTyped)
    if (keyword == name) return types;
  return std::nullopt;
}

uint8_t type_of(const json::Value& v) {
  if (v.is_null()) return kNull;
  if (v.is_bool()) return kBoolean;
  if (v.is_int()) return kInteger | kNumber;
  if (v.is_double()) {
    const double d = v.as_double("a value");
    return std::trunc(d) == d ? kInteger | kNumber : kNumber;
  }
  if (v.is_string()) return kString;
  return v.is_array() ? kArray : kObject;
}

bool same(const json::Value& a, const json::Value& b) {
  if (a.is_number() && b.is_number()) return compare(decimal_of(a), decimal_of(b)) == 0;
  return a == b;
}

}  // namespace

SchemaReader::SchemaReader(const json::Value& root, GrammarBuilder& builder) : root_(root), b_(builder) { measure(); }

// Size and depth before anything is made of the schema.
void SchemaReader::measure() const {
  const GrammarLimits& limits = b_.limits();
  size_t bytes = 0;
  std::vector<std::pair<const json::Value*, int>> open{{&root_, 0}};
  while (!open.empty()) {
    const auto [v, depth] = open.back();
    open.pop_back();
    if (depth > 2 * limits.depth)
      fail_limit(kGrammarDepth, "the schema is nested more than {} schemas deep", limits.depth);
    bytes += 2;
    if (const std::string* s = v->string()) bytes += s->size() + 2;
    if (const json::Array* a = v->array())
      for (const json::Value& item : *a) open.push_back({&item, depth + 1});
    if (const json::Object* o = v->object())
      for (const json::Member& m : *o) {
        bytes += m.first.size() + 3;
        open.push_back({&m.second, depth + 1});
      }
    if (bytes > limits.bytes) fail_limit(kGrammarBytes, "the schema has more than {} bytes", limits.bytes);
  }
}

const json::Array& SchemaReader::array(const json::Value& value, const std::string& path) const {
  if (const json::Array* a = value.array()) return *a;
  fail(ErrorKind::invalid_argument, "the schema at {}: expected an array, found {}", path, value.type_name());
}
const json::Object& SchemaReader::object(const json::Value& value, const std::string& path) const {
  if (const json::Object* o = value.object()) return *o;
  fail(ErrorKind::invalid_argument, "the schema at {}: expected an object, found {}", path, value.type_name());
}
const std::string& SchemaReader::string(const json::Value& value, const std::string& path) const {
  const std::string* s = value.string();
  if (!s) fail(ErrorKind::invalid_argument, "the schema at {}: expected a string, found {}", path, value.type_name());
  return *s;
}

void SchemaReader::check_keywords(const json::Object& schema, const std::string& path) const {
  for (const json::Member& m : schema) {
    const std::string& name = m.first;
    if (!typed(name) && !holds(kGeneral, name) && !holds(kNotes, name) && !name.starts_with("x-"))
      fail(ErrorKind::invalid_argument, "schema keyword \"{}\" at {} is not supported", printable(name, 60),
           fmt::format("{}.{}", path, printable(name, 60)));
    if (m.second.is_null() && name != "const" && name != "default" && !holds(kNotes, name))
      fail(ErrorKind::invalid_argument, "schema keyword \"{}\" at {} is null", name, path);
  }
}

const json::Value& SchemaReader::resolve(const std::string& reference, const std::string& path) const {
  const auto bad = [&](std::string_view why) {
    fail(ErrorKind::invalid_argument, "schema keyword \"$ref\" at {}: \"{}\" {}", path, printable(reference, 80), why);
  };
  if (reference != "#" && !reference.starts_with("#/"))
    bad("is not supported: only references into the schema itself, #/$defs/name, are");
  const json::Value* at = &root_;
  for (size_t i = 1; i < reference.size();) {
    const size_t end = std::min(reference.find('/', i + 1), reference.size());
    std::string name;
    for (size_t k = i + 1; k < end; ++k) {
      const std::string_view rest = std::string_view(reference).substr(k, 2);
      if (rest == "~0" || rest == "~1") {
        name += rest == "~0" ? '~' : '/';
        ++k;
      } else if (reference[k] == '%') {
        bad("has a percent escape, which is not supported");
      } else {
        name += reference[k];
      }
    }
    const json::Value* next = nullptr;
    if (const json::Object* o = at->object()) next = o->find(name);
    else if (const json::Array* a = at->array();
             a && !name.empty() && name.size() < 7 && name.find_first_not_of("0123456789") == std::string::npos)
      if (const auto n = static_cast<size_t>(std::stoul(name)); n < a->size()) next = &(*a)[n];
    if (!next) bad("leads nowhere");
    at = next;
    i = end;
  }
  return *at;
}

const json::Value* SchemaReader::target(const json::Value* schema, const std::string& path) const {
  for (int hops = 0; hops < b_.limits().depth; ++hops) {
    const json::Object* o = schema->object();
    const json::Value* reference = o ? o->find("$ref") : nullptr;
    if (!reference || !reference->is_string()) break;
    const auto alone = [](const json::Member& m) { return m.first == "$ref" || holds(kNotes, m.first); };
    if (!std::all_of(o->begin(), o->end(), alone)) break;
    schema = &resolve(*reference->string(), path);
  }
  return schema;  // one that leads in a circle is found by flattened()
}

std::optional<SchemaParts> SchemaReader::flattened(const SchemaParts& parts, const std::string& path) {
  struct Step {
    SchemaPart part;
    bool leave;
  };
  std::vector<Step> open;
  for (size_t i = parts.size(); i-- > 0;) open.push_back({parts[i], false});
  std::set<const json::Value*> on_path;
  SchemaParts out;
  while (!open.empty()) {
    const Step step = open.back();
    open.pop_back();
    b_.budget().spend(8);
    const json::Value* v = step.part.schema;
    if (step.leave) {
      on_path.erase(v);
      continue;
    }
    if (v->is_bool()) {
      if (!v->as_bool("schema")) return std::nullopt;
      continue;
    }
    const json::Object* o = v->object();
    if (!o) fail(ErrorKind::invalid_argument, "the schema at {}: expected an object, found {}", path, v->type_name());
    check_keywords(*o, path);
    if (on_path.contains(v))
      fail(ErrorKind::invalid_argument, "schema keyword \"$ref\" at {}: the reference leads back to itself", path);
    SchemaPart own = step.part;
    own.expanded = true;
    if (std::find(out.begin(), out.end(), own) == out.end()) out.push_back(own);
    if (step.part.expanded) continue;
    const json::Value* reference = o->find("$ref");
    const json::Value* all = o->find("allOf");
    if (!reference && !all) continue;
    on_path.insert(v);
    open.push_back({step.part, true});
    if (all) {
      const json::Array& list = array(*all, path + ".allOf");
      for (size_t i = list.size(); i-- > 0;) open.push_back({{&list[i]}, false});
    }
    if (reference) open.push_back({{&resolve(string(*reference, path + ".$ref"), path)}, false});
  }
  // Only parts that say something of the value.
  std::erase_if(out, [](const SchemaPart& part) {
    for (const json::Member& m : *part.schema->object()) {
      if (holds(kNotes, m.first) || m.first.starts_with("x-") || m.first == "$ref" || m.first == "allOf") continue;
      if ((m.first == "anyOf" && part.any_of_done) || (m.first == "oneOf" && part.one_of_done)) continue;
      return false;
    }
    return true;
  });
  return out;
}

uint8_t SchemaReader::types(const SchemaParts& parts, const std::string& path) const {
  static constexpr std::array<std::pair<std::string_view, uint8_t>, 7> kNames{{{"null", kNull},
                                                                               {"boolean", kBoolean},
                                                                               {"integer", kInteger},
                                                                               {"number", kInteger | kNumber},
                                                                               {"string", kString},
                                                                               {"array", kArray},
                                                                               {"object", kObject}}};
  uint8_t all = kAllTypes, named = 0, bound = 0;
  for (const SchemaPart& part : parts) {
    for (const json::Member& m : *part.schema->object())
      if (const auto types = typed(m.first)) bound |= *types;
    const json::Value* type = part.schema->get("type");
    if (!type) continue;
    const auto bit = [&](const json::Value& name) {
      const std::string& text = string(name, path + ".type");
      for (const auto& [known, bits] : kNames)
        if (known == text) return bits;
      fail(ErrorKind::invalid_argument, "schema keyword \"type\" at {}: unknown type \"{}\"", path,
           printable(text, 60));
    };
    uint8_t own = 0;
    if (const json::Array* list = type->array())
      for (const json::Value& name : *list) own |= bit(name);
    else own = bit(*type);
    if (const json::Value* nullable = part.schema->get("nullable")) {
      if (!nullable->is_bool())
        fail(ErrorKind::invalid_argument, "the schema at {}.nullable: expected a boolean, found {}", path,
             nullable->type_name());
      if (nullable->as_bool("nullable")) own |= kNull;
    }
    all &= own;
    named = 1;
  }
  if (!named && bound != 0) all = bound;
  return all;
}

NumberLimits SchemaReader::number_limits(const SchemaParts& parts, const std::string& path) const {
  NumberLimits limits;
  const auto number = [&](const json::Value& v, std::string_view keyword) {
    if (!v.is_number())
      fail(ErrorKind::invalid_argument, "the schema at {}.{}: expected a number, found {}", path, keyword,
           v.type_name());
    return decimal_of(v);
  };
  const auto low = [&](const Decimal& d, bool excluded) {
    const int order = limits.low ? compare(d, *limits.low) : 1;
    if (order > 0) limits.low_excluded = excluded;
    if (order == 0) limits.low_excluded |= excluded;
    if (order > 0) limits.low = d;
  };
  const auto high = [&](const Decimal& d, bool excluded) {
    const int order = limits.high ? compare(d, *limits.high) : -1;
    if (order < 0) limits.high_excluded = excluded;
    if (order == 0) limits.high_excluded |= excluded;
    if (order < 0) limits.high = d;
  };
  for (const SchemaPart& part : parts) {
    const auto get = [&](std::string_view keyword) { return part.schema->get(keyword); };
    const json::Value* above = get("exclusiveMinimum");
    const json::Value* below = get("exclusiveMaximum");
    // Draft 4 and OpenAPI 3.0 have booleans beside minimum and maximum.
    const auto flag = [](const json::Value* v) { return v && v->is_bool() && v->as_bool("a flag"); };
    if (const json::Value* v = get("minimum")) low(number(*v, "minimum"), flag(above));
    if (const json::Value* v = get("maximum")) high(number(*v, "maximum"), flag(below));
    if (above && !above->is_bool()) low(number(*above, "exclusiveMinimum"), true);
    if (below && !below->is_bool()) high(number(*below, "exclusiveMaximum"), true);
    if (const json::Value* v = get("multipleOf")) {
      const Decimal d = number(*v, "multipleOf");
      if (d.negative || d.zero() || !d.fraction.empty() || d.whole.size() > 6)
        fail(ErrorKind::invalid_argument,
             "schema keyword \"multipleOf\" at {} is supported for integers from 1 to 999999 alone", path);
      const int64_t own = std::stoll(d.whole);
      int64_t a = limits.multiple_of, b = own;
      while (b != 0) a = std::exchange(b, a % b);
      limits.multiple_of = limits.multiple_of / a * own;
      if (limits.multiple_of > 999'999)
        fail(ErrorKind::invalid_argument, "schema keyword \"multipleOf\" at {}: the multiples meet beyond 999999",
             path);
      // A multiple of 1 is an integer.
      limits.integer = true;
    }
  }
  return limits;
}

SchemaReader::Counts SchemaReader::counts(const SchemaParts& parts, std::string_view low, std::string_view high,
                                          const std::string& path) const {
  Counts counts;
  const auto count = [&](const json::Value& v, std::string_view keyword) {
    const double d = v.is_number() ? v.as_double("a count") : -1;
    if (d < 0 || d != std::trunc(d) || d > 1e9)
      fail(ErrorKind::invalid_argument, "schema keyword \"{}\" at {} must be an integer from 0 to 10^9", keyword, path);
    return static_cast<uint32_t>(d);
  };
  for (const SchemaPart& part : parts) {
    if (const json::Value* v = part.schema->get(low)) counts.min = std::max(counts.min, count(*v, low));
    if (const json::Value* v = part.schema->get(high)) counts.max = std::min(counts.max, count(*v, high));
  }
  return counts;
}

std::optional<std::vector<const json::Value*>> SchemaReader::listed(const SchemaParts& parts,
                                                                    const std::string& path) const {
  std::optional<std::vector<const json::Value*>> out;
  for (const SchemaPart& part : parts) {
    std::vector<const json::Value*> own;
    const json::Value* list = part.schema->object()->find("enum");
    const json::Value* one = part.schema->object()->find("const");
    if (!list && !one) continue;
    if (list)
      for (const json::Value& v : array(*list, path + ".enum")) own.push_back(&v);
    const auto drop_others = [&](std::vector<const json::Value*>& values,
                                 const std::vector<const json::Value*>& allowed) {
      std::erase_if(values, [&](const json::Value* v) {
        b_.budget().spend(static_cast<int64_t>(1 + allowed.size() / 4));
        return std::none_of(allowed.begin(), allowed.end(), [&](const json::Value* a) { return same(*v, *a); });
      });
    };
    if (list && one) drop_others(own, {one});
    else if (one) own.push_back(one);
    if (out) drop_others(*out, own);
    else out = std::move(own);
  }
  return out;
}

bool SchemaReader::admits(const SchemaParts& parts, const json::Value& value, const std::string& path) {
  const uint8_t type = type_of(value);
  for (const SchemaPart& part : parts) {
    const json::Object& o = *part.schema->object();
    if (o.contains("type") && !(types({part}, path) & type)) return false;
    for (const json::Member& m : o) {
      const auto bound = typed(m.first);
      if (bound && (*bound & type & (kArray | kObject)))
        fail(ErrorKind::invalid_argument,
             "schema keyword \"{}\" at {} beside an enum or const with arrays or objects is not supported", m.first,
             path);
    }
  }
  if (const std::string* s = value.string()) {
    const Counts length = counts(parts, "minLength", "maxLength", path);
    const size_t n = unicode::count(*s);
    if (n < length.min || n > length.max) return false;
    for (const SchemaPart& part : parts) {
      if (const json::Value* v = part.schema->get("pattern"))
        if (!pattern(string(*v, path + ".pattern"), path).matches(*s)) return false;
      if (const json::Value* v = part.schema->get("format"))
        if (const auto regex = format_regex(string(*v, path + ".format")))
          if (!pattern(fmt::format("^({})$", *regex), path).matches(*s)) return false;
    }
  }
  if (value.is_number()) {
    const NumberLimits limits = number_limits(parts, path);
    const Decimal d = decimal_of(value);
    const int low = limits.low ? compare(d, *limits.low) : 1, high = limits.high ? compare(d, *limits.high) : -1;
    if (low < 0 || (low == 0 && limits.low_excluded) || high > 0 || (high == 0 && limits.high_excluded)) return false;
    if (limits.integer && !d.fraction.empty()) return false;
    int64_t rest = 0;
    for (const char c : d.whole) rest = (rest * 10 + (c - '0')) % limits.multiple_of;
    if (rest != 0) return false;
  }
  return true;
}

const Dfa& SchemaReader::pattern(const std::string& regex, const std::string& path) {
  const auto found = patterns_.find(regex);
  if (found != patterns_.end()) return found->second;
  const std::string what = fmt::format("the pattern at {}", path);
  return patterns_.emplace(regex, regex_dfa(b_, regex, {.search = true, .what = what})).first->second;
}

std::set<std::string> SchemaReader::required(const SchemaParts& parts, const std::string& path) const {
  std::set<std::string> out;
  for (const SchemaPart& part : parts)
    if (const json::Value* list = part.schema->get("required"))
      for (const json::Value& name : array(*list, path + ".required")) out.insert(string(name, path + ".required"));
  return out;
}

SchemaParts SchemaReader::member(const SchemaParts& parts, const std::string* name, const std::string& path) {
  SchemaParts out;
  for (const SchemaPart& part : parts) {
    bool found = false;
    if (name) {
      if (const json::Value* v = part.schema->get("properties"))
        if (const json::Value* own = object(*v, path + ".properties").find(*name)) {
          out.push_back({own});
          found = true;
        }
      if (const json::Value* v = part.schema->get("patternProperties"))
        for (const json::Member& m : object(*v, path + ".patternProperties"))
          if (pattern(m.first, path + ".patternProperties").matches(*name)) {
            out.push_back({&m.second});
            found = true;
          }
    }
    if (const json::Value* v = part.schema->get("additionalProperties"); v && !found) out.push_back({v});
  }
  return out;
}

std::vector<std::string> SchemaReader::names(const SchemaParts& parts, const std::string& path) const {
  std::vector<std::string> out;
  std::set<std::string> known;
  const auto note = [&](const std::string& name) {
    if (known.insert(name).second) out.push_back(name);
  };
  for (const SchemaPart& part : parts)
    if (const json::Value* v = part.schema->get("properties"))
      for (const json::Member& m : object(*v, path + ".properties")) note(m.first);
  for (const std::string& name : required(parts, path)) note(name);
  return out;
}

const json::Array* SchemaReader::heads(const SchemaPart& part) {
  if (const json::Value* v = part.schema->get("prefixItems")) return v->array();
  const json::Value* v = part.schema->get("items");  // up to draft 2019-09
  return v ? v->array() : nullptr;
}

SchemaParts SchemaReader::element(const SchemaParts& parts, size_t index, const std::string& path) const {
  SchemaParts out;
  for (const SchemaPart& part : parts) {
    if (const json::Value* v = part.schema->get("prefixItems")) array(*v, path + ".prefixItems");
    const json::Array* list = heads(part);
    const json::Value* rest = part.schema->get("items");
    if (rest && rest->is_array()) rest = part.schema->get("additionalItems");
    if (list && index < list->size()) out.push_back({&(*list)[index]});
    else if (rest) out.push_back({rest});
  }
  return out;
}

// Sound, not complete: true only where no value can be of both.
bool SchemaReader::provably_disjoint(const SchemaParts& a, const SchemaParts& b, const std::string& path, int depth) {
  uint8_t ta = types(a, path), tb = types(b, path);
  if ((ta & tb) == 0) return true;
  const auto listed_a = listed(a, path), listed_b = listed(b, path);
  const auto none = [&](const std::vector<const json::Value*>& values, const SchemaParts& other,
                        const std::optional<std::vector<const json::Value*>>& other_values) {
    return std::none_of(values.begin(), values.end(), [&](const json::Value* v) {
      if (other_values)
        return std::any_of(other_values->begin(), other_values->end(),
                           [&](const json::Value* w) { return same(*v, *w); });
      return v->is_array() || v->is_object() ? (types(other, path) & type_of(*v)) != 0 : admits(other, *v, path);
    });
  };
  if (listed_a && none(*listed_a, b, listed_b)) return true;
  if (listed_b && none(*listed_b, a, listed_a)) return true;
  const uint8_t both = ta & tb;
  if ((both & ~(kInteger | kNumber)) == 0) {
    const NumberLimits la = number_limits(a, path), lb = number_limits(b, path);
    const auto below = [](const NumberLimits& x, const NumberLimits& y) {
      if (!x.high || !y.low) return false;
      const int order = compare(*x.high, *y.low);
      return order < 0 || (order == 0 && (x.high_excluded || y.low_excluded));
    };
    return below(la, lb) || below(lb, la);
  }
  if (both == kString || both == kArray) {
    const bool text = both == kString;
    const Counts ca = counts(a, text ? "minLength" : "minItems", text ? "maxLength" : "maxItems", path);
    const Counts cb = counts(b, text ? "minLength" : "minItems", text ? "maxLength" : "maxItems", path);
    return ca.max < cb.min || cb.max < ca.min;
  }
  if (both != kObject || depth >= 4) return false;
  // A member that both must have and that no value suits; or one that only the first must have and the second forbids.
  const std::set<std::string> needed_a = required(a, path), needed_b = required(b, path);
  const auto check = [&](const std::set<std::string>& names, const std::set<std::string>& others) {
    for (const std::string& name : names) {
      b_.budget().spend(16);
      const auto ma = flattened(member(a, &name, path), path), mb = flattened(member(b, &name, path), path);
      if (!ma || !mb) return true;
      if (others.contains(name) && provably_disjoint(*ma, *mb, path, depth + 1)) return true;
    }
    return false;
  };
  return check(needed_a, needed_b) || check(needed_b, needed_a);
}

std::vector<SchemaParts> SchemaReader::branches(const SchemaParts& parts, size_t part, bool one_of,
                                                const std::string& path) {
  const std::string keyword = one_of ? "oneOf" : "anyOf", place = path + "." + keyword;
  const json::Array& list = array(*parts[part].schema->get(keyword), place);
  if (list.size() == 0) fail(ErrorKind::invalid_argument, "schema keyword \"{}\" at {}: an empty list", keyword, place);
  SchemaParts base = parts;
  (one_of ? base[part].one_of_done : base[part].any_of_done) = true;
  std::vector<SchemaParts> sets;
  for (const json::Value& branch : list) {
    sets.push_back(base);
    sets.back().push_back({&branch});
  }
  if (!one_of) return sets;
  std::vector<std::optional<SchemaParts>> flat;
  for (size_t i = 0; i < sets.size(); ++i) flat.push_back(flattened(sets[i], fmt::format("{}[{}]", place, i)));
  for (size_t i = 0; i < flat.size(); ++i)
    for (size_t k = i + 1; k < flat.size(); ++k) {
      b_.budget().spend(64);
      if (flat[i] && flat[k] && !provably_disjoint(*flat[i], *flat[k], place, 0))
        fail(ErrorKind::invalid_argument,
             "schema keyword \"oneOf\" at {} is not supported: branches {} and {} may both hold (anyOf allows that)",
             path, i, k);
    }
  return sets;
}

std::vector<Expr> SchemaReader::contents(const SchemaParts& parts, Encoding encoding, const std::string& path) {
  std::vector<Expr> out;
  for (const SchemaPart& part : parts) {
    if (const json::Value* v = part.schema->get("pattern")) {
      const std::string what = fmt::format("schema keyword \"pattern\" at {}", path);
      out.push_back(
          regex_expr(b_, string(*v, path + ".pattern"), {.encoding = encoding, .search = true, .what = what}));
    }
    if (const json::Value* v = part.schema->get("format"))
      if (const auto regex = format_regex(string(*v, path + ".format"))) out.push_back(regex_expr(b_, *regex, {}));
  }
  return out;
}

Dfa SchemaReader::bounded(const std::vector<Expr>& contents, const Counts& length, Encoding encoding,
                          const std::string& path) {
  const std::string what = fmt::format("the pattern or format with other bounds of the string at {}", path);
  std::optional<Dfa> all;
  const auto add = [&](Expr e) {
    const Dfa one = b_.to_dfa(e, what);
    all = all ? intersection(*all, one, b_.budget()) : one;
  };
  for (const Expr content : contents) add(content);
  if (length.bounded() || !all) add(b_.repeat(b_.points(negated({}), encoding), length.min, length.max));
  return std::move(*all);
}

}  // namespace hearth::text::grammar
