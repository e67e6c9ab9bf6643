#include "text/tools/history.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"

namespace hearth::text {
namespace {

// A call's or a result's id, for an error.
std::string shown(std::string_view id) { return printable(id, 60); }

std::string role_of(const json::Value& message) {
  const json::Value* role = message.get("role");
  return role && role->string() ? *role->string() : "";
}

// An object from what a client sent for it: its JSON text as OpenAI's form has it, or the object itself.
json::Value arguments_object(const json::Value* given, const std::string& where) {
  if (!given) return json::Object{};
  json::Value value = *given;
  if (const std::string* text = given->string()) {
    if (text->find_first_not_of(" \n\r\t") == std::string::npos) return json::Object{};
    try {
      value = json::parse(*text, where);
    } catch (const Error& e) {
      throw Error(ErrorKind::invalid_argument, e.what());
    }
  }
  if (!value.is_object())
    fail(ErrorKind::invalid_argument, "{}: expected a JSON object, found {}", where, value.type_name());
  return value;
}

// Adds text at the end of a message's content, of whatever form it is.
void append_text(json::Value& content, std::string_view separator, std::string text) {
  if (json::Array* parts = content.array()) {
    json::Object part;
    part["type"] = "text";
    part["text"] = std::move(text);
    parts->push_back(std::move(part));
    return;
  }
  const std::string* before = content.string();
  content = before && !before->empty() ? *before + std::string(separator) + text : std::move(text);
}

std::string text_of(const json::Value* content, size_t message) {
  if (!content) return "";
  if (const std::string* text = content->string()) return *text;
  std::string out;
  const json::Array* parts = content->array();
  if (!parts)
    fail(ErrorKind::invalid_argument, "messages[{}].content: expected a string or an array, found {}", message,
         content->type_name());
  for (const json::Value& part : *parts) {
    const json::Value* text = part.get("text");
    if (!text || !text->string())
      fail(ErrorKind::invalid_argument, "messages[{}]: this model takes text alone as a tool's result", message);
    out += *text->string();
  }
  return out;
}

// Mistral's template takes ids of nine letters or digits and no others.
bool is_mistral_id(std::string_view id) {
  return id.size() == 9 && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

class History {
 public:
  explicit History(const HistoryOptions& options)
      : described_(options.dialect == ToolDialect::generic),
        mistral_(options.dialect == ToolDialect::mistral || options.dialect == ToolDialect::mistral_args) {}

  void add(const json::Value& message, size_t index) {
    if (!message.is_object())
      fail(ErrorKind::invalid_argument, "messages[{}]: expected an object, found {}", index, message.type_name());
    const std::string role = role_of(message);
    if (role == "tool") return add_result(message, index);
    close_calls();
    if (role == "assistant") add_answer(message, index);
    else out_.push_back(message);
  }

  json::Array finish() {
    close_calls();
    return std::move(out_);
  }

 private:
  struct Call {
    std::string id, name, given_id;
    std::optional<json::Value> result;
  };

  void add_answer(const json::Value& message, size_t index) {
    json::Object answer = *message.object();
    const json::Value* calls = message.get("tool_calls");
    if (calls && !calls->is_array())
      fail(ErrorKind::invalid_argument, "messages[{}].tool_calls: expected an array, found {}", index,
           calls->type_name());
    answer.erase("tool_calls");
    if (calls && !calls->array()->empty()) {
      answer_index_ = index;
      if (!answer.find("content") || answer["content"].is_null()) answer["content"] = "";
      json::Array list;
      std::string markup;
      for (const json::Value& call : *calls->array())
        add_call(call, fmt::format("messages[{}].tool_calls[{}]", index, list.size()), list, markup);
      if (described_) append_text(answer["content"], "\n", markup);
      else answer["tool_calls"] = std::move(list);
    }
    out_.push_back(std::move(answer));
  }

  void add_call(const json::Value& given, const std::string& where, json::Array& list, std::string& markup) {
    const json::Value* id = given.get("id");
    const json::Value* function = given.get("function");
    const json::Value* name = function ? function->get("name") : nullptr;
    if (!name || !name->string() || name->string()->empty())
      fail(ErrorKind::invalid_argument, "{}: a call needs a function with a name", where);
    if (!id || !id->string() || id->string()->empty())
      fail(ErrorKind::invalid_argument, "{}: a call needs an id", where);
    for (const Call& other : open_)
      if (other.given_id == *id->string())
        fail(ErrorKind::invalid_argument, "{}: two calls have the id \"{}\"", where, shown(other.given_id));
    Call call{.id = *id->string(), .name = *name->string(), .given_id = *id->string(), .result = {}};
    ++calls_;
    if (mistral_ && !is_mistral_id(call.id)) call.id = fmt::format("call{:05}", calls_ % 100'000);

    json::Object inner;
    inner["name"] = call.name;
    inner["arguments"] = arguments_object(function->get("arguments"), where + ".function.arguments");
    markup += fmt::format("{}<tool_call>\n{}\n</tool_call>", markup.empty() ? "" : "\n", json::dump(inner));
    json::Object entry;
    entry["id"] = call.id;
    entry["type"] = "function";
    entry["function"] = std::move(inner);
    list.push_back(std::move(entry));
    open_.push_back(std::move(call));
  }

  void add_result(const json::Value& message, size_t index) {
    const json::Value* id = message.get("tool_call_id");
    if (!id || !id->string())
      fail(ErrorKind::invalid_argument, "messages[{}]: a tool's result needs a tool_call_id", index);
    const auto call =
        std::find_if(open_.begin(), open_.end(), [&](const Call& c) { return c.given_id == *id->string(); });
    if (call == open_.end())
      fail(ErrorKind::invalid_argument, "messages[{}]: no call ahead of it has the id \"{}\"", index,
           shown(*id->string()));
    if (call->result)
      fail(ErrorKind::invalid_argument, "messages[{}]: the call \"{}\" has a result already", index,
           shown(*id->string()));
    if (described_) {
      call->result = text_of(message.get("content"), index);
      return;
    }
    json::Object result = *message.object();
    result["tool_call_id"] = call->id;
    if (!message.get("name")) result["name"] = call->name;
    if (!message.get("content")) result["content"] = "";
    call->result = std::move(result);
  }

  // Results stand in the order of their calls: most templates show no ids.
  void close_calls() {
    std::string text;
    for (Call& call : open_) {
      if (!call.result)
        fail(ErrorKind::invalid_argument, "messages[{}]: the call \"{}\" of {} has no result behind it", answer_index_,
             shown(call.given_id), shown(call.name));
      if (described_)
        text +=
            fmt::format("{}<tool_response>\n{}\n</tool_response>", text.empty() ? "" : "\n", *call.result->string());
      else out_.push_back(std::move(*call.result));
    }
    if (!text.empty()) {
      json::Object message;
      message["role"] = "user";
      message["content"] = std::move(text);
      out_.push_back(std::move(message));
    }
    open_.clear();
  }

  bool described_, mistral_;
  json::Array out_;
  std::vector<Call> open_;
  size_t answer_index_ = 0, calls_ = 0;
};

}  // namespace

std::string tool_prompt(std::span<const ToolSpec> tools, bool parallel_calls) {
  std::string out = "# Tools\n\nYou can call these tools, described one a line as JSON:\n<tools>\n";
  const json::Value list = tools_for_template(tools);
  for (const json::Value& tool : *list.array()) out += json::dump(tool) + "\n";
  out +=
      "</tools>\n\nTo call a tool, write its name and its arguments as JSON between these tags:\n<tool_call>\n"
      "{\"name\": \"tool name\", \"arguments\": {\"argument name\": \"value\"}}\n</tool_call>\n";
  out += parallel_calls ? "Several calls may stand behind each other. " : "Make one call at a time. ";
  out += "Results come back between <tool_response> and </tool_response>. When no tool helps, just answer.";
  return out;
}

json::Value messages_for_template(const json::Value& messages, const HistoryOptions& options) {
  const json::Array* list = messages.array();
  if (!list) fail(ErrorKind::invalid_argument, "messages: expected an array, found {}", messages.type_name());
  History history(options);
  size_t index = 0;
  for (const json::Value& message : *list) history.add(message, index++);
  json::Array out = history.finish();
  if (options.dialect != ToolDialect::generic || options.tools.empty()) return out;

  std::string prompt = tool_prompt(options.tools, options.parallel_calls);
  const std::string first = out.empty() ? "" : role_of(out[0]);
  if (first == "system" || first == "developer") {
    append_text((*out[0].object())["content"], "\n\n", std::move(prompt));
    return out;
  }
  json::Array with_system;
  json::Object system;
  system["role"] = "system";
  system["content"] = std::move(prompt);
  with_system.push_back(std::move(system));
  for (json::Value& message : out) with_system.push_back(std::move(message));
  return with_system;
}

}  // namespace hearth::text
