// An answer that is a call without the dialect's tags: what models write that were taught to call but not these tags,
// such as Qwen2.5-Coder.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "text/tools/call_reader.h"

namespace hearth::text::tools {

// One object {"name": NAME, "arguments": {...}} of a known tool, alone, in a fence (``` or ```json) or between <tools>
// and </tools>, with white space around it and nothing else. An answer that only holds such an object stays text: it
// may be an example, or another program's JSON.
class BareCall {
 public:
  explicit BareCall(std::span<const ToolSpec> tools) : call_(make_strict_json_call(tools)) {}

  bool push(char c);  // false: the answer is no such call
  bool whole() const { return state_ == State::end; }
  const std::string& text() const { return text_; }  // what was pushed
  CallReader& call() { return *call_; }

 private:
  enum class State { start, open, object, close, end };

  std::unique_ptr<CallReader> call_;
  State state_ = State::start;
  std::string text_, word_;
  std::string_view close_;  // what must follow the object
};

}  // namespace hearth::text::tools
