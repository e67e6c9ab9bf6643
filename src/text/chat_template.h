// Chat templates: a conversation to the text that a model was trained on.
#pragma once
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/template/template.h"

namespace hearth::text {

using Rendered = jinja::Rendered;

struct ChatInput {
  json::Value messages = json::Array{};  // array of objects with role and content
  json::Value tools;                     // array of tool schemas; null: none
  json::Value documents;                 // array; null: none
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;
  json::Object extra;          // further variables: enable_thinking, ...; reserved names are refused
  std::optional<std::tm> now;  // local civil time, for templates that print the date
};

// The strings of a conversation are more than a prompt takes.
class TextTooLong : public Error {
 public:
  TextTooLong(int64_t bytes, int64_t bytes_max)
      : Error(ErrorKind::out_of_memory,
              fmt::format("the conversation has {} bytes of text, a prompt takes at most {}", bytes, bytes_max)),
        bytes_(bytes),
        bytes_max_(bytes_max) {}
  int64_t bytes() const { return bytes_; }
  int64_t bytes_max() const { return bytes_max_; }

 private:
  int64_t bytes_, bytes_max_;
};

// Any thread; rendering changes nothing.
class ChatTemplate {
 public:
  // `name` appears in errors. Throws Error{invalid_argument} "<name>, line <n>: <what>" when the source does not parse.
  explicit ChatTemplate(std::string_view source, std::string name = "chat template");

  // Throws Error{invalid_argument}: what the template raises (its own words behind name and line), a passed limit,
  // text that is not UTF-8, malformed messages, content parts other than text for a template that takes only text, or
  // an `extra` name that is reserved. TextTooLong: the strings of the input are more than limits.input_bytes.
  std::string render(const ChatInput& input, const jinja::RenderLimits& limits = {}) const;
  // The same, with the byte ranges that the template marks as the assistant's ({% generation %}), and those that it
  // quotes from the conversation. Of the conversation, only roles that are names (letters, digits, _ and -) count as
  // the template's words: many write "<|" + role + "|>".
  Rendered render_marked(const ChatInput& input, const jinja::RenderLimits& limits = {}) const;

  bool uses_tools() const { return mentions("tools"); }          // reads `tools`
  bool takes_parts() const { return takes_parts_; }              // looks into content that is a list of parts
  bool handles_developer() const { return handles_developer_; }  // knows the role `developer`
  bool marks_generation() const { return marks_generation_; }
  bool mentions(std::string_view variable) const;  // the template says this name somewhere

  // Names that a request's extra variables may not take.
  static bool is_reserved(std::string_view variable);

 private:
  json::Value prepared_messages(const json::Value& messages) const;

  jinja::Template template_;
  bool takes_parts_ = false, handles_developer_ = false, marks_generation_ = false;
};

}  // namespace hearth::text
