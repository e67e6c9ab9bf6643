// OpenAI's responses: a body and what went before to a Generation, events to output items (spec server 2.9, 3.2, 3.3).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "server/dialects/answer.h"
#include "server/http/fields.h"

namespace hearth::server::responses {

std::span<const Field> response_fields();

// What the responses before this one leave to it: their input and output items in order, and the instructions in force.
struct Past {
  json::Array items;
  std::optional<std::string> instructions;
};

// A tool as the client knows it.
struct ToolOrigin {
  std::string space, name;  // space: the namespace that it stands in; empty: none
  bool custom = false;      // takes a text in place of JSON, and its calls come back as such
};
using ToolOrigins = std::map<std::string, ToolOrigin, std::less<>>;  // by the name that the model is shown

// The name that the model is shown of a tool in a namespace.
std::string shown_name(const std::string& space, const std::string& name);

struct ResponsesRequest {
  std::string model, keep_alive;
  Generation generation;  // without messages until converse()
  bool stream = false, store = true;
  std::string previous_response_id;         // empty: none
  json::Array items;                        // input; a string became a user's message
  std::optional<std::string> instructions;  // after converse(): those in force
  json::Object echo;                        // fields that the response repeats
  ToolOrigins origins;                      // of the tools
};

// Throws RequestError naming the field. Tools that only OpenAI's servers run are left out.
ResponsesRequest parse_responses(const json::Object& body);

// Makes the messages: instructions and system items in front, what went before, the new input. Throws RequestError
// naming the item.
void converse(ResponsesRequest& request, Past past);

std::unique_ptr<AnswerWriter> responses_writer(const ResponsesRequest& request);

}  // namespace hearth::server::responses
