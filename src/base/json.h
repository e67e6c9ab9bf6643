// JSON values: keys keep their order, integers stay integers. The only face of the JSON library in hearth.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/chunked.h"

namespace hearth::json {

class Value;
using Array = Chunked<Value>;  // the vector interface, without data() and reserve()
using Member = std::pair<std::string, Value>;

class Object {
 public:
  const Value* find(std::string_view key) const;  // linear; null when absent
  Value& operator[](std::string_view key);        // appends null when absent
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  bool erase(std::string_view key);
  size_t size() const { return members.size(); }
  auto begin() const { return members.begin(); }
  auto end() const { return members.end(); }
  bool operator==(const Object&) const;

  Chunked<Member> members;
};

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool v) : data_(v) {}
  Value(int v) : data_(int64_t{v}) {}
  Value(int64_t v) : data_(v) {}
  Value(uint64_t v) : data_(static_cast<int64_t>(v)) {}
  Value(double v) : data_(v) {}
  Value(const char* v) : data_(std::string(v)) {}
  Value(std::string_view v) : data_(std::string(v)) {}
  Value(std::string v) : data_(std::move(v)) {}
  Value(Array v) : data_(std::move(v)) {}
  Value(Object v) : data_(std::move(v)) {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_double() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(data_); }
  bool is_array() const { return std::holds_alternative<Array>(data_); }
  bool is_object() const { return std::holds_alternative<Object>(data_); }
  std::string_view type_name() const;

  // Checked access: Error{corrupt_file} "<what>: expected a string, found a number" on another type.
  bool as_bool(std::string_view what) const;
  int64_t as_int(std::string_view what) const;  // an integral double counts
  double as_double(std::string_view what) const;
  const std::string& as_string(std::string_view what) const;
  const Array& as_array(std::string_view what) const;
  const Object& as_object(std::string_view what) const;

  // Unchecked: null when the value has another type.
  const std::string* string() const { return std::get_if<std::string>(&data_); }
  const Array* array() const { return std::get_if<Array>(&data_); }
  const Object* object() const { return std::get_if<Object>(&data_); }
  Array* array() { return std::get_if<Array>(&data_); }
  Object* object() { return std::get_if<Object>(&data_); }

  // Member of an object; null when this is no object, the key is absent or its value is null.
  const Value* get(std::string_view key) const;

  bool operator==(const Value&) const;

 private:
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> data_;
};

struct ParseLimits {
  int depth = 96;
  size_t bytes_max = 512u << 20;
};

// Throws Error{corrupt_file}: "<what>: <reason> at byte <offset>" or "<what>: duplicate key "<key>"". Duplicate keys,
// trailing bytes and invalid UTF-8 are errors. `what` names the document (a file, a request field).
Value parse(std::string_view text, std::string_view what, const ParseLimits& limits = {});

// Receives a document's parts in order, for tables too large for Values. Views live during the call alone; a throw
// ends parsing. Duplicate keys are the visitor's business.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
  virtual void key(std::string_view name) = 0;
  virtual void scalar(Value value) = 0;  // null, boolean, number
  virtual void string(std::string_view text) = 0;
};
void visit(std::string_view text, std::string_view what, Visitor& visitor, const ParseLimits& limits = {});

struct DumpOptions {
  int indent = 0;  // 0: one line
};
std::string dump(const Value& value, const DumpOptions& options = {});

}  // namespace hearth::json
