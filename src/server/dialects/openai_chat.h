// OpenAI's chat completions: a body to a Generation, events to chunks or a document (spec server 2.3, 3.2, 3.3).
#pragma once
#include <memory>
#include <span>
#include <string>

#include "server/dialects/answer.h"
#include "server/http/fields.h"

namespace hearth::server::openai {

std::span<const Field> chat_fields();

struct ChatRequest {
  std::string model, keep_alive;
  Generation generation;
  bool stream = false, include_usage = false, mlx_logprobs = false;
};

// Throws RequestError naming the field.
ChatRequest parse_chat(const json::Object& body);

std::unique_ptr<AnswerWriter> chat_writer(const ChatRequest& request);

// The checks of messages and tools that the dialects share once theirs are in this shape.
void check_messages(const json::Value& messages);
inline constexpr size_t kToolsMax = 256;
void check_tools(const json::Value& tools);
json::Value read_tool_choice(const json::Value& choice, const json::Value& tools);

// response_format, guided_*, llama.cpp's grammar and json_schema, structured_outputs: the first in spec server 27's
// order as Generation::format, with its field. Throws RequestError for what cannot be read: nothing that asks for a
// format is passed over.
void read_format(const json::Object& body, Generation& generation);
// The same of one {type: text | json_object | json_schema, schema or json_schema.schema}; null for text. `param` is
// what the client calls it.
json::Value read_response_format(const json::Value& format, std::string_view param);
std::string read_keep_alive(const json::Object& body);

json::Object usage_json(const Usage& usage);
json::Object timings_json(const Usage& usage);

}  // namespace hearth::server::openai
