#include "text/tools/tool_spec.h"

#include <charconv>
#include <functional>
#include <utility>

namespace hearth::text {

json::Value tools_for_template(std::span<const ToolSpec> tools) {
  json::Array list;
  for (const ToolSpec& tool : tools) {
    json::Object function;
    function["name"] = tool.name;
    function["description"] = tool.description;
    function["parameters"] = tool.parameters.is_null() ? json::Value(json::Object{}) : tool.parameters;
    json::Object entry;
    entry["type"] = "function";
    entry["function"] = std::move(function);
    list.push_back(std::move(entry));
  }
  return list;
}

namespace tools {
namespace {

struct Types {
  bool string = false, null = false;
};

// A cycle of references and a deep nest both end here; what lies deeper counts as unknown.
constexpr int kDepthMax = 16;

// "#/$defs/City" in the document `root`; null when it leads nowhere or out of the document.
const json::Value* referenced(const json::Value& root, std::string_view reference) {
  if (!reference.starts_with('#')) return nullptr;
  reference.remove_prefix(1);
  const json::Value* at = &root;
  while (!reference.empty()) {
    if (reference.front() != '/') return nullptr;
    reference.remove_prefix(1);
    const std::string_view raw = reference.substr(0, reference.find('/'));
    reference.remove_prefix(raw.size());
    std::string part;
    for (size_t i = 0; i < raw.size(); ++i) {
      const std::string_view two = raw.substr(i, 2);
      const bool escape = two == "~0" || two == "~1";
      part += escape ? (two == "~0" ? '~' : '/') : raw[i];
      i += escape ? 1 : 0;
    }
    if (const json::Array* list = at->array()) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      if (error != std::errc() || end != part.data() + part.size() || index >= list->size()) return nullptr;
      at = &(*list)[index];
    } else if (const json::Value* member = at->get(part)) {
      at = member;
    } else {
      return nullptr;
    }
  }
  return at;
}

void add_name(const json::Value& type, Types& types) {
  const std::string* name = type.string();
  types.string |= name && *name == "string";
  types.null |= name && *name == "null";
}

void add_value(const json::Value& value, Types& types) {
  types.string |= value.is_string();
  types.null |= value.is_null();
}

void collect(const json::Value& schema, const json::Value& root, Types& types, int depth) {
  const json::Object* object = schema.object();
  if (!object || depth > kDepthMax) return;
  if (const json::Value* reference = schema.get("$ref"); reference && reference->string())
    if (const json::Value* target = referenced(root, *reference->string())) collect(*target, root, types, depth + 1);
  if (const json::Value* type = schema.get("type")) {
    add_name(*type, types);
    if (const json::Array* list = type->array())
      for (const json::Value& one : *list) add_name(one, types);
  }
  if (const json::Value* values = schema.get("enum"); values && values->array())
    for (const json::Value& value : *values->array()) add_value(value, types);
  if (const json::Value* value = object->find("const")) add_value(*value, types);
  if (const json::Value* nullable = schema.get("nullable"); nullable && *nullable == json::Value(true))
    types.null = true;
  for (const std::string_view keyword : {"anyOf", "oneOf", "allOf"})
    if (const json::Value* branches = schema.get(keyword); branches && branches->array())
      for (const json::Value& branch : *branches->array()) collect(branch, root, types, depth + 1);
}

// What `get` finds in `object` or in a schema that it is made of.
const json::Value* found_in(const json::Value& object, const json::Value& root, int depth,
                            const std::function<const json::Value*(const json::Value&)>& get) {
  if (depth > kDepthMax) return nullptr;
  if (const json::Value* found = get(object)) return found;
  if (const json::Value* reference = object.get("$ref"); reference && reference->string())
    if (const json::Value* target = referenced(root, *reference->string()))
      if (const json::Value* found = found_in(*target, root, depth + 1, get)) return found;
  for (const std::string_view keyword : {"allOf", "anyOf", "oneOf"})
    if (const json::Value* branches = object.get(keyword); branches && branches->array())
      for (const json::Value& branch : *branches->array())
        if (const json::Value* found = found_in(branch, root, depth + 1, get)) return found;
  return nullptr;
}

// The schema of one argument; what a branch says of names that it does not know counts where no other knows this one.
const json::Value* argument_schema(const json::Value& parameters, std::string_view key) {
  const auto known = [&](const json::Value& object) {
    const json::Value* properties = object.get("properties");
    return properties ? properties->get(key) : nullptr;
  };
  if (const json::Value* found = found_in(parameters, parameters, 0, known)) return found;
  return found_in(parameters, parameters, 0, [](const json::Value& o) { return o.get("additionalProperties"); });
}

}  // namespace

StringRule string_rule(const json::Value& parameters, std::string_view key) {
  const json::Value* schema = argument_schema(parameters, key);
  if (!schema) return StringRule::no;
  Types types;
  collect(*schema, parameters, types, 0);
  if (!types.string) return StringRule::no;
  return types.null ? StringRule::nullable : StringRule::yes;
}

const ToolSpec* find_tool(std::span<const ToolSpec> tools, std::string_view name) {
  for (const ToolSpec& tool : tools)
    if (tool.name == name) return &tool;
  return nullptr;
}

}  // namespace tools
}  // namespace hearth::text
