// Values as text: str, repr, JSON, %-formatting and str.format, as Python prints them.
#pragma once
#include <string>
#include <string_view>

#include "text/template/interpreter.h"

namespace hearth::text::jinja {

void append_str(Interpreter& in, Text& out, const Value& v);
void append_repr(Interpreter& in, Text& out, const Value& v);
Text to_str(Interpreter& in, const Value& v);
// The bytes of str(v): a view of v itself when it is a string.
std::string_view str_view(Interpreter& in, const Value& v);
std::string float_repr(double v);

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  bool lines = false;  // indent is not None
  std::string indent;
  std::string item_separator = ", ", key_separator = ": ";
};
// json.dumps of the style. Fault: a value that JSON cannot hold.
Text to_json(Interpreter& in, const Value& v, const JsonStyle& style);

Text percent_format(Interpreter& in, std::string_view format, const Value& args);
Text brace_format(Interpreter& in, std::string_view format, const Args& args);

}  // namespace hearth::text::jinja
