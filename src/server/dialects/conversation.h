// A conversation of another dialect on its way into the shape of OpenAI's chat: messages, each with the name that the
// client knows its origin by.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth::server {

struct Conversation {
  json::Array messages;             // {role, content, reasoning_content?, tool_calls?, tool_call_id?, name?}
  std::vector<std::string> places;  // of each message, e.g. "messages[3]": for the sentences of errors

  void say(std::string_view role, std::string text, std::string place);
  // The answer to a call; its function's name is looked up among the calls before it.
  void tool_result(const std::string& id, std::string text, std::string place);
  // The last message, if it is the assistant's and takes more calls; else a new one of it, empty.
  json::Object& assistant(const std::string& place);
  bool awaits_results() const;  // the last message is the assistant's, with calls
  void call(const std::string& id, const std::string& name, std::string arguments, const std::string& place);

 private:
  bool assistant_last() const;
};

// Calls and their results pair up: a result names a call of the turn before it, a call has its result before anything
// else is said, and arguments are JSON objects. Throws RequestError("messages") naming the place at fault.
void check_tool_history(const Conversation& conversation);

// {type: "function", function: {name, description?, parameters?, strict?}} of the parts; null ones are left out.
json::Object function_tool(const json::Value& name, const json::Value* description, json::Value parameters,
                           const json::Value* strict);

}  // namespace hearth::server
