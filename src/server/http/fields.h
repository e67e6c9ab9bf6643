// The fields of request bodies as tables: they check a body, and they are the schema that /openapi.json shows.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/json.h"

namespace hearth::server {

enum class FieldType : uint8_t {
  boolean,
  integer,
  number,
  string,
  array,
  object,
  string_or_array,  // of strings
  string_or_object,
  string_or_number,
  any
};

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct Field {
  std::string_view name;
  FieldType type = FieldType::any;
  std::string_view help;
  double min = -kUnbounded, max = kUnbounded;  // of numbers; of a string's bytes or an array's items
  std::string_view words = {};                 // "a|b": a string is one of these
  bool required = false;
  std::string_view wrong_type = {};  // the sentence of a wrong type, where clients look for its words
};

// Throws RequestError naming the first field that is missing, of a wrong type, or out of range. null is as absent;
// fields that no table names are ignored. Numbers are finite; an integral number counts as an integer.
void check_fields(const json::Object& body, std::span<const Field> fields);

// The field's value; null where it is absent or null.
const json::Value* present(const json::Object& body, std::string_view key);

// JSON Schema of such a body.
json::Object schema_of(std::span<const Field> fields);

}  // namespace hearth::server
