#include "server/dialects/anthropic.h"

#include <algorithm>
#include <utility>

#include "server/dialects/anthropic_tools.h"
#include "server/dialects/conversation.h"
#include "server/dialects/openai_chat.h"
#include "server/dialects/sampling_fields.h"
#include "server/limits.h"

namespace hearth::server::anthropic {
namespace {

constexpr Field kConversation[] = {
    {"model", FieldType::string, "a name of /v1/models; empty: the default model", 0, 1024},
    {"messages", FieldType::array, "the conversation", 1, most::kMessages, {}, true},
    {"system", FieldType::any, "a string, or blocks of text"},
    {"tools", FieldType::array, "functions that the model may call: name, description, input_schema", 0,
     openai::kToolsMax},
    {"tool_choice", FieldType::object, "auto, any, tool, none; disable_parallel_tool_use: one call at most"},
    {"thinking", FieldType::object, "enabled with budget_tokens, adaptive, or disabled"},
    {"output_config", FieldType::object, "effort; format: a JSON schema of the answer"},
};
constexpr Field kAnswer[] = {
    {"max_tokens", FieldType::integer, "tokens of the answer at most", 0, 1e9, {}, true},
    {"stop_sequences", FieldType::string_or_array, "up to 16 strings that end the answer"},
    {"stream", FieldType::boolean, "server-sent events"},
};

constexpr std::string_view kBillingLine = "x-anthropic-billing-header";
constexpr std::string_view kBetweenBlocks = "\n\n";

RequestError wrong(std::string_view param, std::string sentence) { return {std::string(param), sentence}; }

// Claude Code's first system line holds a number that changes with every turn: with it no prompt would be a prefix of
// the next one.
std::string without_billing(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!text.starts_with(kBillingLine)) kept += text.substr(0, end);
    text.remove_prefix(end);
  }
  return kept;
}

const std::string& need_text(const json::Value& from, std::string_view key, const std::string& where) {
  const json::Value* value = from.get(key);
  if (!value || !value->string()) throw wrong("messages", fmt::format("{}.{} must be a string", where, key));
  return *value->string();
}

const std::string& type_of(const json::Value& block, const std::string& where) {
  const json::Value* type = block.get("type");
  if (!type || !type->string()) throw wrong("messages", where + " must be an object with a type");
  return *type->string();
}

[[noreturn]] void refuse(const std::string& type, const std::string& where) {
  if (type == "image") throw wrong("messages", where + " is an image, and the model reads text only");
  throw wrong("messages", fmt::format("{} is of type {}, which is not supported", where, type));
}

void append(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += kBetweenBlocks;
  text += more;
}

// The text of a result: a string, or blocks of text and of tools that a search found.
std::string result_text(const json::Value& content, const std::string& where, ToolChanges& tools) {
  if (const std::string* text = content.string()) return *text;
  if (!content.array())
    throw wrong("messages",
                fmt::format("{} must be a string or an array of blocks, not {}", where, content.type_name()));
  std::string text;
  for (size_t i = 0; i < content.array()->size(); ++i) {
    const std::string at = fmt::format("{}[{}]", where, i);
    const json::Value& block = (*content.array())[i];
    const std::string& type = type_of(block, at);
    if (type != "text" && type != "tool_reference") refuse(type, at);
    append(text, type == "text" ? need_text(block, "text", at) : tools.refer(block, at));
  }
  return text;
}

std::string system_text(const json::Value& system, const std::string& where, ToolChanges& tools) {
  if (const std::string* text = system.string()) return without_billing(*text);
  if (!system.array()) throw wrong(where, where + " must be a string or an array of blocks of text");
  std::string text;
  for (size_t i = 0; i < system.array()->size(); ++i) {
    const std::string at = fmt::format("{}[{}]", where, i);
    const json::Value& block = (*system.array())[i];
    const std::string& type = type_of(block, at);
    if (type == "text") append(text, without_billing(need_text(block, "text", at)));
    else if (type == "tool_addition" || type == "tool_removal") tools.read(block, at);
    else refuse(type, at);
  }
  return text;
}

// Results of calls stand before what else the turn says, as templates want them.
void read_user(const json::Array& blocks, const std::string& place, Conversation& out, ToolChanges& tools) {
  std::string text;
  bool said = blocks.size() == 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string where = fmt::format("{}.content[{}]", place, i);
    const std::string& type = type_of(blocks[i], where);
    if (type == "text") {
      append(text, need_text(blocks[i], "text", where));
      said = true;
    } else if (type == "tool_result") {
      const json::Value* content = blocks[i].get("content");
      std::string result = content ? result_text(*content, where + ".content", tools) : "";
      const json::Value* failed = blocks[i].get("is_error");
      if (failed && !failed->is_bool()) throw wrong("messages", where + ".is_error must be of type bool");
      if (failed && failed->as_bool("is_error") && !result.starts_with("Error")) result.insert(0, "Error: ");
      out.tool_result(need_text(blocks[i], "tool_use_id", where), std::move(result), where);
    } else {
      refuse(type, where);
    }
  }
  if (said) out.say("user", std::move(text), place);
}

void read_assistant(const json::Array& blocks, const std::string& place, Conversation& out) {
  out.say("assistant", "", place);
  std::string text, thinking;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string where = fmt::format("{}.content[{}]", place, i);
    const std::string& type = type_of(blocks[i], where);
    if (type == "text") {
      append(text, need_text(blocks[i], "text", where));
    } else if (type == "thinking") {
      append(thinking, need_text(blocks[i], "thinking", where));
    } else if (type == "tool_use") {
      const json::Value* input = blocks[i].get("input");
      if (!input || !input->object()) throw wrong("messages", where + ".input must be an object");
      out.call(need_text(blocks[i], "id", where), need_text(blocks[i], "name", where), json::dump(*input), place);
    } else if (type != "redacted_thinking" && type != "server_tool_use" && !type.ends_with("_tool_result")) {
      refuse(type, where);
    }
  }
  json::Object& message = out.assistant(place);
  message["content"] = std::move(text);
  if (!thinking.empty()) message["reasoning_content"] = std::move(thinking);  // templates that keep it look for it
}

void read_message(const json::Value& message, const std::string& place, Conversation& out, ToolChanges& tools) {
  if (!message.object()) throw wrong("messages", place + " must be an object");
  const std::string& role = need_text(message, "role", place);
  if (role != "user" && role != "assistant" && role != "system")
    throw wrong("messages", place + ".role must be user, assistant or system");
  const json::Value* content = message.get("content");
  if (!content) throw wrong("messages", place + ".content is required");
  if (role == "system") {
    if (std::string text = system_text(*content, place + ".content", tools); !text.empty())
      out.say(role, std::move(text), place);
    return;
  }
  if (const std::string* text = content->string()) return out.say(role, *text, place);
  if (!content->array())
    throw wrong("messages",
                fmt::format("{}.content must be a string or an array of blocks, not {}", place, content->type_name()));
  role == "user" ? read_user(*content->array(), place, out, tools) : read_assistant(*content->array(), place, out);
}

void read_thinking(const json::Value& thinking, Generation& g) {
  const json::Value* type = thinking.get("type");
  const std::string word = type && type->string() ? *type->string() : "";
  if (word != "enabled" && word != "disabled" && word != "adaptive" && word != "between_tools")
    throw wrong("thinking", "thinking.type must be enabled, adaptive or disabled");
  g.thinking = word != "disabled";
  const json::Value* budget = thinking.get("budget_tokens");
  if (!budget || word != "enabled") return;
  if (!budget->is_int() || budget->as_int("budget_tokens") < 0)
    throw wrong("thinking", "thinking.budget_tokens must be a whole number, 0 or more");
  g.reasoning_budget = budget->as_int("budget_tokens");
}

void read_output_config(const json::Value& config, Generation& g) {
  if (const json::Value* effort = config.get("effort")) {
    static constexpr std::string_view kWords[] = {"low", "medium", "high", "xhigh", "max"};
    if (!effort->string() || std::find(std::begin(kWords), std::end(kWords), *effort->string()) == std::end(kWords))
      throw wrong("output_config", "output_config.effort must be one of low, medium, high, xhigh, max");
    g.reasoning_effort = *effort->string();  // says how much, not whether: that is thinking.type's
  }
  if (const json::Value* format = config.get("format"))
    g.format = openai::read_response_format(*format, g.format_field = "output_config.format");
}

MessagesRequest parse(json::Object body, bool for_count) {
  check_fields(body, kConversation);
  MessagesRequest request;
  Generation& g = request.generation;
  body.erase("logit_bias");  // no field of this dialect
  read_sampling(body, g);
  if (const json::Value* model = present(body, "model")) request.model = *model->string();
  Conversation conversation;
  ToolChanges changes;
  if (const json::Value* system = present(body, "system"))
    if (std::string text = system_text(*system, "system", changes); !text.empty())
      conversation.say("system", std::move(text), "system");
  const json::Array& messages = *body.find("messages")->array();
  for (size_t i = 0; i < messages.size(); ++i)
    read_message(messages[i], fmt::format("messages[{}]", i), conversation, changes);
  if (!for_count) {
    check_tool_history(conversation);
    if (*messages[messages.size() - 1].get("role")->string() == "assistant")
      throw wrong("messages",
                  "the last message is the assistant's; answers that continue one (prefill) are not supported");
  }
  g.messages = std::move(conversation.messages);
  if (const json::Value* tools = present(body, "tools")) g.tools = read_tools(*tools->array(), changes);
  if (const json::Value* choice = present(body, "tool_choice")) read_tool_choice(*choice, g);
  if (const json::Value* config = present(body, "output_config")) read_output_config(*config, g);
  if (const json::Value* thinking = present(body, "thinking")) read_thinking(*thinking, g);
  request.keep_alive = openai::read_keep_alive(body);
  return request;
}

}  // namespace

std::span<const Field> conversation_fields() { return kConversation; }
std::span<const Field> answer_fields() { return kAnswer; }

MessagesRequest parse_count(json::Object body) { return parse(std::move(body), true); }

MessagesRequest parse_messages(json::Object body) {
  check_fields(body, kAnswer);
  const int64_t max_tokens = body.find("max_tokens")->as_int("max_tokens");
  const json::Value* stream = present(body, "stream");
  const bool streams = stream && stream->as_bool("stream");
  const json::Value* stops = present(body, "stop_sequences");
  std::vector<std::string> stop_list = stops ? read_stops(*stops, "stop_sequences") : std::vector<std::string>();
  MessagesRequest request = parse(std::move(body), false);
  request.generation.max_tokens = max_tokens;
  request.generation.stops = std::move(stop_list);
  request.stream = streams;
  return request;
}

}  // namespace hearth::server::anthropic
