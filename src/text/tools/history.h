// A conversation with calls of tools, made ready for a chat template.
#pragma once
#include <span>
#include <string>

#include "base/json.h"
#include "text/tools/dialect.h"
#include "text/tools/tool_spec.h"

namespace hearth::text {

struct HistoryOptions {
  ToolDialect dialect = ToolDialect::generic;
  std::span<const ToolSpec> tools;  // described in the system text where the dialect is generic
  bool parallel_calls = true;       // what that description allows
};

// System text for models whose template knows no tools: what there is, and that calls are written as hermes does.
std::string tool_prompt(std::span<const ToolSpec> tools, bool parallel_calls);

// `messages` in OpenAI's form, as templates want them: the arguments of calls are objects, results stand behind their
// calls in the order of the calls and carry the tool's name, a message with calls has text (perhaps empty), and none
// has an empty list of calls. For mistral, ids of another form than its template takes become nine characters. For
// generic, calls become hermes markup in the assistant's text, results go to one user message between <tool_response>
// tags, and the tools are described at the end of the system text. Messages without calls stay as they are. Throws
// Error{invalid_argument}, naming "messages[i]": a call without a name, an id, or arguments that are a JSON object; two
// calls of one message with the same id; a call without a result ahead of the next other message or the end; a result
// without a call, or a second one. Any thread.
json::Value messages_for_template(const json::Value& messages, const HistoryOptions& options);

}  // namespace hearth::text
