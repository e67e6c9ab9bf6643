#include "server/http/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "server/http/problem.h"

namespace hearth::server {
namespace {

std::string_view words_for(FieldType type) {
  switch (type) {
    case FieldType::boolean: return "bool";
    case FieldType::integer: return "int";
    case FieldType::number: return "number";
    case FieldType::string: return "string";
    case FieldType::array: return "array";
    case FieldType::object: return "object";
    case FieldType::string_or_array: return "string or array of strings";
    case FieldType::string_or_object: return "string or object";
    case FieldType::string_or_number: return "string or number";
    case FieldType::any: return "any";
  }
  return "";
}

bool is_whole(const json::Value& value) {
  if (value.is_int()) return true;
  if (!value.is_double()) return false;
  const double d = value.as_double("");
  return std::isfinite(d) && d == std::floor(d) && std::fabs(d) < 9.0e15;
}

bool fits(FieldType type, const json::Value& value) {
  const bool strings = value.array() && std::all_of(value.array()->begin(), value.array()->end(),
                                                    [](const json::Value& v) { return v.is_string(); });
  switch (type) {
    case FieldType::boolean: return value.is_bool();
    case FieldType::integer: return is_whole(value);
    case FieldType::number: return value.is_number();
    case FieldType::string: return value.is_string();
    case FieldType::array: return value.is_array();
    case FieldType::object: return value.is_object();
    case FieldType::string_or_array: return value.is_string() || strings;
    case FieldType::string_or_object: return value.is_string() || value.is_object();
    case FieldType::string_or_number: return value.is_string() || value.is_number();
    case FieldType::any: return true;
  }
  return false;
}

std::string bound(double value) {
  return std::fabs(value) < 1e15 && value == std::floor(value) ? fmt::format("{}", static_cast<int64_t>(value))
                                                               : fmt::format("{}", value);
}

void check_range(const Field& field, double size, std::string_view unit) {
  if (size >= field.min && size <= field.max) return;
  const std::string range = field.max == kUnbounded ? fmt::format("at least {}", bound(field.min))
                            : field.min == -kUnbounded
                                ? fmt::format("at most {}", bound(field.max))
                                : fmt::format("between {} and {}", bound(field.min), bound(field.max));
  throw RequestError(std::string(field.name),
                     unit.empty() ? fmt::format("{} must be {}, not {}", field.name, range, bound(size))
                                  : fmt::format("{} must have {} {}, not {}", field.name, range, unit, bound(size)));
}

void check_words(const Field& field, const std::string& value) {
  std::string_view words = field.words;
  while (!words.empty()) {
    const size_t end = std::min(words.find('|'), words.size());
    if (words.substr(0, end) == value) return;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  std::string list(field.words);
  for (size_t at; (at = list.find('|')) != std::string::npos;) list.replace(at, 1, ", ");
  throw RequestError(std::string(field.name), fmt::format("{} must be one of {}", field.name, list));
}

}  // namespace

void check_fields(const json::Object& body, std::span<const Field> fields) {
  for (const Field& field : fields) {
    const json::Value* value = body.find(field.name);
    if (!value || value->is_null()) {
      if (field.required) throw RequestError(std::string(field.name), fmt::format("{} is required", field.name));
      continue;
    }
    if (!fits(field.type, *value))
      throw RequestError(std::string(field.name), field.wrong_type.empty()
                                                      ? fmt::format("{} must be of type {}, not {}", field.name,
                                                                    words_for(field.type), value->type_name())
                                                      : std::string(field.wrong_type));
    if (value->is_number()) {
      const double number = value->as_double(field.name);
      if (!std::isfinite(number))
        throw RequestError(std::string(field.name), fmt::format("{} must be a finite number", field.name));
      check_range(field, number, "");
    }
    if (const std::string* text = value->string()) {
      if (!field.words.empty()) check_words(field, *text);
      else if (field.type == FieldType::string) check_range(field, static_cast<double>(text->size()), "bytes");
    }
    if (value->array()) check_range(field, static_cast<double>(value->array()->size()), "items");
  }
}

const json::Value* present(const json::Object& body, std::string_view key) {
  const json::Value* value = body.find(key);
  return value && !value->is_null() ? value : nullptr;
}

json::Object schema_of(std::span<const Field> fields) {
  json::Object properties;
  json::Array required;
  for (const Field& field : fields) {
    json::Object schema;
    const auto one_of = [&](std::initializer_list<const char*> types) {
      json::Array list;
      for (const char* type : types) list.emplace_back(type);
      list.emplace_back("null");
      schema["type"] = std::move(list);
    };
    switch (field.type) {
      case FieldType::boolean: one_of({"boolean"}); break;
      case FieldType::integer: one_of({"integer"}); break;
      case FieldType::number: one_of({"number"}); break;
      case FieldType::string: one_of({"string"}); break;
      case FieldType::array: one_of({"array"}); break;
      case FieldType::object: one_of({"object"}); break;
      case FieldType::string_or_array: one_of({"string", "array"}); break;
      case FieldType::string_or_object: one_of({"string", "object"}); break;
      case FieldType::string_or_number: one_of({"string", "number"}); break;
      case FieldType::any: break;
    }
    const bool is_list = field.type == FieldType::array;
    const bool is_text = field.type == FieldType::string;
    if (field.type == FieldType::string_or_array) {
      json::Object items;
      items["type"] = "string";
      schema["items"] = std::move(items);
    }
    if (field.min != -kUnbounded) schema[is_list ? "minItems" : is_text ? "minLength" : "minimum"] = field.min;
    if (field.max != kUnbounded) schema[is_list ? "maxItems" : is_text ? "maxLength" : "maximum"] = field.max;
    if (!field.words.empty() && is_text) {
      json::Array words;
      for (std::string_view rest = field.words; !rest.empty();) {
        const size_t end = std::min(rest.find('|'), rest.size());
        words.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      words.emplace_back(nullptr);
      schema["enum"] = std::move(words);
    }
    schema["description"] = field.help;
    properties[field.name] = std::move(schema);
    if (field.required) required.emplace_back(field.name);
  }
  json::Object body;
  body["type"] = "object";
  body["properties"] = std::move(properties);
  if (required.size() > 0) body["required"] = std::move(required);
  return body;
}

}  // namespace hearth::server
