// Arguments of a tool in notations that are no JSON object: tags around each, or an object of marked strings.
//
// What the grammar lets through, a dialect's reader decodes to a value that the schema allows: an argument is decoded
// by what its schema says of strings (Rule), so only that reading of it is let through.
#pragma once
#include <functional>
#include <string>

#include "text/grammar/expr.h"

namespace hearth::text {

// For GrammarBuilder::arguments. Arguments are those that the schema names, optional ones may be missing. It throws
// Error{invalid_argument} as compile_json_schema does, and for a required name that the notation cannot spell and a
// string of bounded length beyond what it can hold.
struct ArgumentNotation {
  enum class Form : uint8_t {
    tagged,  // before_key KEY after_key VALUE close after_close, once an argument, in the schema's order
    marked,  // {key:value,...}, strings between two marks, names bare where they can be
  };
  // How the reader takes the text of a value.
  enum class Rule : uint8_t {
    json,          // as JSON
    text,          // as a string, whatever it looks like
    text_or_null,  // the word null alone is null
  };
  Form form = Form::tagged;
  std::function<Rule(const std::string& name)> rule;      // of the argument `name`
  std::function<bool(const std::string& name)> has_name;  // tagged: whether the notation can spell it
  // tagged:
  std::string before_key, after_key, close, after_close;
  bool line_break = false;  // the last line break before `close` is no part of the value
  // tagged: what encloses a value that holds &, < or a line break; empty: nothing does, they stand as they are
  std::string section_open, section_close;
  std::string mark;  // marked
};

}  // namespace hearth::text
