#include "server/dialects/conversation.h"

#include <set>

#include "server/http/problem.h"

namespace hearth::server {
namespace {

const std::string& text_of(const json::Value& from, std::string_view key) {
  static const std::string kNone;
  const json::Value* value = from.get(key);
  return value && value->string() ? *value->string() : kNone;
}

bool is_object(const std::string& arguments) {
  try {
    return json::parse(arguments, "arguments").is_object();
  } catch (const Error&) {
    return false;
  }
}

RequestError misplaced(std::string sentence) { return RequestError("messages", sentence); }

}  // namespace

void Conversation::say(std::string_view role, std::string text, std::string place) {
  json::Object message;
  message["role"] = role;
  message["content"] = std::move(text);
  messages.push_back(std::move(message));
  places.push_back(std::move(place));
}

void Conversation::tool_result(const std::string& id, std::string text, std::string place) {
  json::Object message;
  message["role"] = "tool";
  message["tool_call_id"] = id;
  for (size_t i = messages.size(); i-- > 0 && !message.contains("name");) {
    const json::Value* calls = messages[i].get("tool_calls");
    if (!calls || !calls->array()) continue;
    for (const json::Value& call : *calls->array())
      if (text_of(call, "id") == id) message["name"] = text_of(*call.get("function"), "name");
  }
  message["content"] = std::move(text);
  messages.push_back(std::move(message));
  places.push_back(std::move(place));
}

bool Conversation::assistant_last() const {
  return messages.size() > 0 && text_of(messages[messages.size() - 1], "role") == "assistant";
}

bool Conversation::awaits_results() const {
  return assistant_last() && messages[messages.size() - 1].get("tool_calls");
}

json::Object& Conversation::assistant(const std::string& place) {
  if (!assistant_last()) say("assistant", "", place);
  return *messages[messages.size() - 1].object();
}

void Conversation::call(const std::string& id, const std::string& name, std::string arguments,
                        const std::string& place) {
  json::Object one, function;
  one["id"] = id;
  one["type"] = "function";
  function["name"] = name;
  function["arguments"] = std::move(arguments);
  one["function"] = std::move(function);
  json::Value& calls = assistant(place)["tool_calls"];
  if (!calls.array()) calls = json::Array();
  calls.array()->push_back(std::move(one));
}

void check_tool_history(const Conversation& conversation) {
  std::set<std::string> open;
  std::string asked;  // the place of the open calls
  const auto unanswered = [&](const std::string& before) {
    if (!open.empty()) throw misplaced(fmt::format("{}: the call {} has no result {}", asked, *open.begin(), before));
  };
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const json::Value& message = conversation.messages[i];
    const std::string& place = conversation.places[i];
    if (text_of(message, "role") == "tool") {
      const std::string& id = text_of(message, "tool_call_id");
      if (open.erase(id) == 0)
        throw misplaced(fmt::format("{}: a result for {}, which is no open call of the turn before it", place,
                                    id.empty() ? "no call" : id));
      continue;
    }
    unanswered("before " + place);
    const json::Value* calls = message.get("tool_calls");
    if (!calls || !calls->array()) continue;
    asked = place;
    for (const json::Value& call : *calls->array()) {
      const std::string& id = text_of(call, "id");
      if (id.empty()) throw misplaced(fmt::format("{}: a call without an id", place));
      if (!open.insert(id).second) throw misplaced(fmt::format("{}: two calls with the id {}", place, id));
      if (!is_object(text_of(*call.get("function"), "arguments")))
        throw misplaced(fmt::format("{}: the arguments of the call {} are no JSON object", place, id));
    }
  }
  unanswered("behind it");
}

json::Object function_tool(const json::Value& name, const json::Value* description, json::Value parameters,
                           const json::Value* strict) {
  json::Object tool, function;
  tool["type"] = "function";
  function["name"] = name;
  if (description) function["description"] = *description;
  if (!parameters.is_null()) function["parameters"] = std::move(parameters);
  if (strict) function["strict"] = *strict;
  tool["function"] = std::move(function);
  return tool;
}

}  // namespace hearth::server
