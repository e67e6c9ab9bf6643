// A tool that a request offers, and what its schema says about the types of arguments.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth::text {

struct ToolSpec {
  std::string name;
  std::string description;
  json::Value parameters;  // JSON Schema of an object; null: no arguments are known
};

// The tools as templates expect them: [{"type": "function", "function": {name, description, parameters}}, ...].
json::Value tools_for_template(std::span<const ToolSpec> tools);

namespace tools {

// Whether text that a model wrote without quotes is a string: a schema that allows strings says yes, whatever the text
// looks like. `nullable`: the word null alone is null.
enum class StringRule { no, yes, nullable };

// Of the argument `key`. Looks at type, enum, const, anyOf, oneOf, allOf and local $ref; a key outside of `properties`
// is ruled by `additionalProperties`. Nothing known: no. Any thread.
StringRule string_rule(const json::Value& parameters, std::string_view key);

// Null when no tool has this name. Linear.
const ToolSpec* find_tool(std::span<const ToolSpec> tools, std::string_view name);

}  // namespace tools
}  // namespace hearth::text
