// Input items of responses to messages.
#include <algorithm>
#include <utility>

#include "server/dialects/conversation.h"
#include "server/dialects/responses.h"

namespace hearth::server::responses {
namespace {

RequestError wrong(const std::string& sentence) { return {"input", sentence}; }

const std::string& need_text(const json::Value& item, std::string_view key, const std::string& place) {
  const json::Value* value = item.get(key);
  if (!value || !value->string()) throw wrong(fmt::format("{}.{} must be a string", place, key));
  return *value->string();
}

// Text of a string or of parts. One part is one text: they follow each other with nothing between, as a text that was
// streamed in parts does.
std::string text_of(const json::Value* content, const std::string& where) {
  if (!content) return "";
  if (const std::string* text = content->string()) return *text;
  if (!content->array())
    throw wrong(fmt::format("{} must be a string or an array of parts, not {}", where, content->type_name()));
  std::string text;
  for (size_t i = 0; i < content->array()->size(); ++i) {
    const json::Value& part = (*content->array())[i];
    const std::string at = fmt::format("{}[{}]", where, i);
    const std::string& type = need_text(part, "type", at);
    if (type == "refusal") text += need_text(part, "refusal", at);
    else if (type == "input_text" || type == "output_text" || type == "text" || type == "reasoning_text" ||
             type == "summary_text")
      text += need_text(part, "text", at);
    else if (type == "input_image") throw wrong(at + " is an image, and the model reads text only");
    else throw wrong(fmt::format("{} is of type {}, which is not supported", at, type));
  }
  return text;
}

// Calls of tools that OpenAI's servers run, their results, and marks of its own: no part of what the model sees here.
bool is_foreign(const std::string& type) {
  static constexpr std::string_view kTypes[] = {"web_search_call",
                                                "file_search_call",
                                                "code_interpreter_call",
                                                "image_generation_call",
                                                "computer_call",
                                                "computer_call_output",
                                                "local_shell_call",
                                                "local_shell_call_output",
                                                "shell_call",
                                                "shell_call_output",
                                                "apply_patch_call",
                                                "apply_patch_call_output",
                                                "mcp_call",
                                                "mcp_list_tools",
                                                "mcp_approval_request",
                                                "mcp_approval_response",
                                                "tool_search_call",
                                                "tool_search_output",
                                                "compaction",
                                                "compaction_trigger",
                                                "context_compaction"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

class Reader {
 public:
  void read(const json::Value& item, const std::string& place) {
    if (!item.object()) throw wrong(place + " must be an object");
    const std::string type = item.get("type") ? need_text(item, "type", place) : "message";
    if (type == "message") return message(item, place);
    if (type == "function_call" || type == "custom_tool_call") {
      std::string arguments = type == "function_call" ? need_text(item, "arguments", place) : "";
      if (type == "custom_tool_call") {
        json::Object input;
        input["input"] = need_text(item, "input", place);
        arguments = json::dump(input);
      } else if (arguments.empty()) {
        arguments = "{}";
      }
      const std::string space = present(*item.object(), "namespace") ? need_text(item, "namespace", place) : "";
      out_.call(need_text(item, "call_id", place), shown_name(space, need_text(item, "name", place)),
                std::move(arguments), place);
      think(place);
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      out_.tool_result(need_text(item, "call_id", place), text_of(item.get("output"), place + ".output"), place);
    } else if (type == "reasoning") {
      const json::Value* content = item.get("content");
      const bool has_content = content && content->array() && content->array()->size() > 0;
      thinking_ += text_of(has_content ? content : item.get("summary"), place);
    } else if (!is_foreign(type)) {
      throw wrong(fmt::format("{} is of type {}, which is not supported", place, type));
    }
  }

  Conversation take() { return std::move(out_); }
  Conversation& out() { return out_; }

 private:
  void message(const json::Value& item, const std::string& place) {
    const std::string& role = need_text(item, "role", place);
    if (role != "user" && role != "assistant" && role != "system" && role != "developer")
      throw wrong(place + ".role must be user, assistant, system or developer");
    std::string text = text_of(item.get("content"), place + ".content");
    if (role == "assistant" && out_.awaits_results()) {
      json::Value& said = out_.assistant(place)["content"];  // between its calls, of one turn with them
      said = *said.string() + text;
    } else {
      out_.say(role == "developer" ? "system" : role, std::move(text), place);
    }
    if (role == "assistant") think(place);
    else thinking_.clear();  // it led to nothing that was said
  }

  // Reasoning belongs to what the assistant says next.
  void think(const std::string& place) {
    if (!thinking_.empty()) out_.assistant(place)["reasoning_content"] = std::exchange(thinking_, {});
  }

  Conversation out_;
  std::string thinking_;
};

}  // namespace

void converse(ResponsesRequest& request, Past past) {
  if (!request.instructions) request.instructions = std::move(past.instructions);
  Reader reader;
  if (request.instructions && !request.instructions->empty())
    reader.out().say("system", *request.instructions, "instructions");
  for (const json::Value& item : past.items) reader.read(item, "an item before " + request.previous_response_id);
  for (size_t i = 0; i < request.items.size(); ++i) reader.read(request.items[i], fmt::format("input[{}]", i));
  Conversation conversation = reader.take();
  if (conversation.messages.size() == 0) throw wrong("input has no message");
  check_tool_history(conversation);
  request.generation.messages = std::move(conversation.messages);
}

}  // namespace hearth::server::responses
