// Whether a value is what a schema asks for, by the words of JSON Schema alone: judges what grammars let through.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "../grammar/grammar_cases.h"
#include "base/json.h"
#include "base/utf8.h"

namespace hearth::text {

inline bool is_of_type(const json::Value& v, const std::string& type) {
  if (type == "string") return v.is_string();
  if (type == "integer") return v.is_int() || (v.is_double() && v.as_double("") == std::floor(v.as_double("")));
  if (type == "number") return v.is_number();
  if (type == "boolean") return v.is_bool();
  if (type == "null") return v.is_null();
  return type == "array" ? v.is_array() : v.is_object();
}

inline size_t characters(const std::string& text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

// A pattern is looked for anywhere unless its ends say otherwise.
inline bool matches(const std::string& pattern, const std::string& text) {
  const bool whole = pattern.starts_with('^') && pattern.ends_with('$');
  return accepts(compile_regex(whole ? pattern : "[\\s\\S]*(" + pattern + ")[\\s\\S]*"), text);
}

// Of the keywords that the tests' schemas have. `root`: where "#/..." leads.
inline bool satisfies(const json::Value& v, const json::Value& schema, const json::Value& root) {
  if (schema.is_bool()) return schema.as_bool("");
  const auto bound = [&](const char* key) { return schema.get(key); };
  if (const auto* reference = bound("$ref")) {
    const json::Value* at = &root;
    std::string path = reference->as_string("").substr(2);
    for (size_t from = 0; from < path.size();) {
      const size_t to = std::min(path.find('/', from), path.size());
      at = at->get(path.substr(from, to - from));
      from = to + 1;
    }
    if (!satisfies(v, *at, root)) return false;
  }
  if (const auto* type = bound("type")) {
    bool any = type->string() && is_of_type(v, *type->string());
    if (const json::Array* list = type->array())
      for (const json::Value& one : *list) any |= is_of_type(v, one.as_string(""));
    if (!any) return false;
  }
  if (const auto* list = bound("enum")) {
    bool any = false;
    for (const json::Value& one : list->as_array("")) any |= one == v;
    if (!any) return false;
  }
  if (const json::Value* one = schema.object()->find("const"); one && !(*one == v)) return false;
  if (const auto* list = bound("anyOf")) {
    bool any = false;
    for (const json::Value& one : list->as_array("")) any |= satisfies(v, one, root);
    if (!any) return false;
  }
  if (const std::string* s = v.string()) {
    if (const auto* n = bound("minLength"); n && static_cast<int64_t>(characters(*s)) < n->as_int("")) return false;
    if (const auto* n = bound("maxLength"); n && static_cast<int64_t>(characters(*s)) > n->as_int("")) return false;
    if (const auto* p = bound("pattern"); p && !matches(p->as_string(""), *s)) return false;
  }
  if (v.is_number()) {
    if (const auto* n = bound("minimum"); n && v.as_double("") < n->as_double("")) return false;
    if (const auto* n = bound("maximum"); n && v.as_double("") > n->as_double("")) return false;
  }
  if (const json::Array* list = v.array()) {
    if (const auto* n = bound("minItems"); n && static_cast<int64_t>(list->size()) < n->as_int("")) return false;
    if (const auto* n = bound("maxItems"); n && static_cast<int64_t>(list->size()) > n->as_int("")) return false;
    if (const auto* items = bound("items"))
      for (const json::Value& one : *list)
        if (!satisfies(one, *items, root)) return false;
  }
  if (const json::Object* o = v.object()) {
    if (const auto* needed = bound("required"))
      for (const json::Value& name : needed->as_array(""))
        if (!o->find(name.as_string(""))) return false;
    const json::Value* known = bound("properties");
    const json::Value* others = schema.object()->find("additionalProperties");
    for (const json::Member& member : *o) {
      const json::Value* own = known ? known->object()->find(member.first) : nullptr;
      if (const json::Value* rule = own ? own : others; rule && !satisfies(member.second, *rule, root)) return false;
    }
  }
  return true;
}

}  // namespace hearth::text
