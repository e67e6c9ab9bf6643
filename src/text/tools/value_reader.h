// Values as models write them, byte by byte: JSON, what Python prints, Gemma's own notation.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "text/tools/argument_writer.h"
#include "text/tools/tool_spec.h"

namespace hearth::text::tools {

enum class Syntax {
  json,    // as RFC 8259, but raw control characters in strings are taken
  python,  // JSON and also True, False, None, 'text'
  gemma,   // {key:<|"|>text<|"|>,n:42}: bare keys, strings between the mark <|"|>; JSON strings too
};

enum class Step {
  more,    // wants another byte
  done,    // the byte was the last of the value
  before,  // the value ended before the byte, which belongs to what follows
  failed,
};

// One value into a writer, which it must find at depth 0. Unpaired surrogates become U+FFFD; duplicate keys, numbers
// beyond the range of a double and values that nest too deep fail. After anything but `more` a reader is used up.
class ValueReader {
 public:
  // `tool`: with Syntax::gemma, bare text of an argument that is a string by this tool's schema is a string.
  ValueReader(ArgumentWriter& writer, Syntax syntax, const ToolSpec* tool = nullptr)
      : writer_(&writer), syntax_(syntax), tool_(tool) {}

  Step push(char c);
  // The text ends here: done or failed.
  Step finish();

 private:
  enum class State {
    value,
    first_value,
    first_key,
    key,
    bare_key,
    mark,
    colon,
    after,
    string,
    escape,
    unicode,
    token,
    bare_string,
    done
  };
  Step begin_value(char c);
  Step begin_key(char c);
  Step begin_string(char quote);
  Step end_string();
  Step end_key();
  Step end_value();
  Step end_token();
  Step close();
  Step string_byte(char c);
  Step escaped(char c);
  Step hex_digit(char c);
  void put(std::string_view bytes);
  void put_point(uint32_t point);
  void drop_surrogate();

  ArgumentWriter* writer_;
  Syntax syntax_;
  const ToolSpec* tool_;
  State state_ = State::value;
  std::string key_, token_;
  bool in_key_ = false;  // the string being read is a key
  char quote_ = '"';     // '<': Gemma's mark
  size_t matched_ = 0;   // bytes of Gemma's mark
  uint32_t unit_ = 0, high_ = 0;
  int digits_ = 0;
  StringRule rule_ = StringRule::no;
};

// Whether `text` is a number of RFC 8259 that a double holds.
bool is_number(std::string_view text);

}  // namespace hearth::text::tools
