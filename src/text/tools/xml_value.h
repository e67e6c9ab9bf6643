// The text of an argument between tags, decoded by the tool's schema while it arrives.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "text/tools/argument_writer.h"
#include "text/tools/tool_spec.h"
#include "text/tools/value_reader.h"

namespace hearth::text::tools {

// What an argument's text looks like in a dialect.
struct XmlValueRules {
  std::string_view close;                // ends the value where one of `next` follows it; elsewhere it is text
  std::array<std::string_view, 2> next;  // the next argument's tag, the end of the call
  bool line_breaks = false;              // a line break behind the opening and before the closing tag is no text
  bool markup = false;                   // a value may be a CDATA section; elsewhere entities (&lt; &#10;) are decoded
};

// Strings are passed on as they arrive, but for what may be the closing tag or a last line break. Other values are held
// until they are whole: JSON or what Python prints for it; text that is neither becomes a string. One value an object.
class XmlValueReader {
 public:
  // The rules outlive the reader. The writer stands behind the argument's key.
  XmlValueReader(const XmlValueRules& rules, ArgumentWriter& writer, StringRule rule);

  // more or done; after done, `next` says which of rules.next was read; absent: it is still to come.
  Step push(char c);
  std::optional<size_t> next() const { return next_; }
  void finish();  // the value is what was read; for one without text

 private:
  enum class State { start, plain, section };
  Step start_byte(char c);
  Step body_byte(char c);
  void content(char c);
  void text(char c);
  void put(char c);
  void put(std::string_view bytes);
  void end_entity();
  void decode();

  const XmlValueRules* rules_;
  ArgumentWriter* writer_;
  StringRule rule_;
  State state_ = State::start;
  std::string blanks_;        // at the start, before a CDATA section or text
  std::string held_;          // perhaps the closing tag
  bool closed_ = false;       // held_ is the closing tag, `gap_` and `follow_` stand behind it
  std::string gap_, follow_;  // blanks, and perhaps one of next
  std::string entity_;        // perhaps an entity: from & on
  bool line_break_ = false;   // held: perhaps the last one
  bool string_open_ = false;  // the string's first bytes were written
  std::string value_;         // of other types; of nullable strings, perhaps null
  std::optional<size_t> next_;
};

}  // namespace hearth::text::tools
