#include "server/dialects/responses.h"

#include <algorithm>
#include <utility>

#include "server/dialects/conversation.h"
#include "server/dialects/openai_chat.h"
#include "server/dialects/sampling_fields.h"
#include "server/limits.h"

namespace hearth::server::responses {
namespace {

constexpr Field kFields[] = {
    {"model", FieldType::string, "a name of /v1/models; empty: the default model", 0, 1024},
    {"input",
     FieldType::any,
     "a text, or items: message, function_call, function_call_output, reasoning",
     -kUnbounded,
     kUnbounded,
     {},
     true},
    {"instructions", FieldType::string, "a system message; absent: that of the response before"},
    {"previous_response_id", FieldType::string, "a stored response that this one goes on from", 0, 256},
    {"store", FieldType::boolean, "false: the response is not kept [true]"},
    {"stream", FieldType::boolean, "server-sent events"},
    {"max_output_tokens", FieldType::integer, "tokens of the answer at most", 0, 1e9},
    {"tools", FieldType::array, "functions that the model may call: type, name, description, parameters", 0, 256},
    {"tool_choice", FieldType::string_or_object, "none, auto, required, or a function"},
    {"parallel_tool_calls", FieldType::boolean, "false: one call at most"},
    {"text", FieldType::object, "format: text, json_object, json_schema"},
    {"reasoning", FieldType::object, "effort: none turns thinking off"},
    {"include", FieldType::array, "message.output_text.logprobs: log-probabilities of the tokens", 0, 64},
    {"top_logprobs", FieldType::integer, "the likeliest tokens beside each", 0, 20},
    {"metadata", FieldType::object, "given back with the response"},
    {"background", FieldType::boolean, "true is not supported"},
    {"conversation", FieldType::any, "not supported: previous_response_id chains responses"},
    {"prompt", FieldType::object, "not supported"},
};

RequestError wrong(std::string_view param, const std::string& sentence) { return {std::string(param), sentence}; }

// {type: "custom"}: free text in place of JSON. Here it is a function of that one string.
json::Object custom_parameters(const json::Value& tool) {
  json::Object text, properties, schema;
  json::Array required;
  text["type"] = "string";
  if (const json::Value* format = tool.get("format"))
    if (const json::Value* definition = format->get("definition"); definition && definition->string())
      text["description"] = *definition;
  properties["input"] = std::move(text);
  required.emplace_back("input");
  schema["type"] = "object";
  schema["properties"] = std::move(properties);
  schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

// Functions and custom tools of the list, and of the namespaces in it.
void read_tools(const json::Array& tools, const std::string& place, const std::string& space, json::Array& list,
                ToolOrigins& origins) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("{}[{}]", place, i);
    const json::Value* type = tools[i].get("type");
    if (!type || !type->string()) throw wrong("tools", where + ".type must be a string");
    const bool custom = *type->string() == "custom", has_tools = space.empty() && *type->string() == "namespace";
    if (!custom && !has_tools && *type->string() != "function") continue;  // web_search, file_search, ...
    const json::Value* name = tools[i].get("name");
    if (!name || !name->string()) throw wrong("tools", where + ".name must be a string");
    if (list.size() >= openai::kToolsMax)
      throw RequestError("tools", fmt::format("{}: more than {} functions", where, openai::kToolsMax),
                         std::string(row_of(LimitId::tools).name));
    if (has_tools) {
      const json::Value* inner = tools[i].get("tools");
      if (!inner || !inner->array()) throw wrong("tools", where + ".tools must be an array");
      read_tools(*inner->array(), where + ".tools", *name->string(), list, origins);
      continue;
    }
    const json::Value* parameters = tools[i].get("parameters");
    const std::string shown = shown_name(space, *name->string());
    origins[shown] = {.space = space, .name = *name->string(), .custom = custom};
    json::Value schema = custom ? json::Value(custom_parameters(tools[i])) : parameters ? *parameters : json::Value();
    list.emplace_back(function_tool(shown, tools[i].get("description"), std::move(schema), tools[i].get("strict")));
  }
}

json::Value read_tools(const json::Array& tools, ToolOrigins& origins) {
  json::Array list;
  read_tools(tools, "tools", "", list, origins);
  if (list.size() == 0) return {};
  json::Value checked = std::move(list);
  openai::check_tools(checked);
  return checked;
}

// {type: "allowed_tools", mode, tools}: some of the tools, and auto or required.
json::Value allowed_tools(const json::Value& choice, Generation& g) {
  const json::Value* names = choice.get("tools");
  const json::Value* mode = choice.get("mode");
  if (!names || !names->array()) throw wrong("tool_choice", "tool_choice.tools must be an array");
  if (!mode || !mode->string() || (*mode->string() != "auto" && *mode->string() != "required"))
    throw wrong("tool_choice", "tool_choice.mode must be auto or required");
  json::Array kept;
  if (g.tools.array())
    for (const json::Value& tool : *g.tools.array())
      if (std::any_of(names->array()->begin(), names->array()->end(), [&](const json::Value& allowed) {
            return allowed.get("name") && *allowed.get("name") == *tool.get("function")->get("name");
          }))
        kept.push_back(tool);
  g.tools = kept.size() > 0 ? json::Value(std::move(kept)) : json::Value();
  return *mode;
}

void read_tool_fields(const json::Object& body, ResponsesRequest& request) {
  Generation& g = request.generation;
  if (const json::Value* tools = present(body, "tools")) g.tools = read_tools(*tools->array(), request.origins);
  if (const json::Value* choice = present(body, "tool_choice")) {
    const json::Value* type = choice->get("type");
    const bool some = type && type->string() && *type->string() == "allowed_tools";
    g.tool_choice = openai::read_tool_choice(some ? allowed_tools(*choice, g) : *choice, g.tools);
  }
  if (const json::Value* parallel = present(body, "parallel_tool_calls"))
    g.parallel_tool_calls = parallel->as_bool("parallel_tool_calls");
}

void read_reasoning(const json::Value& reasoning, Generation& g) {
  const json::Value* effort = reasoning.get("effort");
  if (!effort) return;
  static constexpr std::string_view kWords[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
  if (!effort->string() || std::find(std::begin(kWords), std::end(kWords), *effort->string()) == std::end(kWords))
    throw wrong("reasoning", "reasoning.effort must be one of none, minimal, low, medium, high, xhigh, max");
  set_effort(g, *effort->string());
}

void read_logprobs(const json::Object& body, Generation& g) {
  if (const json::Value* include = present(body, "include"))
    for (const json::Value& word : *include->array())
      if (word.string() && *word.string() == "message.output_text.logprobs") g.top_logprobs = 0;
  if (const json::Value* top = present(body, "top_logprobs"))
    if (const int64_t n = top->as_int("top_logprobs"); n > 0 || g.top_logprobs) g.top_logprobs = n;
}

json::Array input_items(const json::Value& input) {
  if (const json::Array* list = input.array()) return *list;
  if (!input.string())
    throw wrong("input", fmt::format("input must be a string or an array of items, not {}", input.type_name()));
  json::Object message;
  message["type"] = "message";
  message["role"] = "user";
  message["content"] = input;
  json::Array items;
  items.push_back(std::move(message));
  return items;
}

}  // namespace

std::span<const Field> response_fields() { return kFields; }

std::string shown_name(const std::string& space, const std::string& name) {
  return space.empty() ? name : fmt::format("{}.{}", space, name);
}

ResponsesRequest parse_responses(const json::Object& body) {
  check_fields(body, kFields);
  const auto on = [&](std::string_view key, bool fallback) {
    const json::Value* value = present(body, key);
    return value ? value->as_bool(key) : fallback;
  };
  if (on("background", false)) throw wrong("background", "background responses are not supported");
  for (const char* key : {"conversation", "prompt"})
    if (present(body, key)) throw wrong(key, fmt::format("{} is not supported", key));
  ResponsesRequest request;
  Generation& g = request.generation;
  read_sampling(body, g);
  if (const json::Value* model = present(body, "model")) request.model = *model->string();
  if (const json::Value* id = present(body, "previous_response_id")) request.previous_response_id = *id->string();
  if (const json::Value* text = present(body, "instructions")) request.instructions = *text->string();
  request.items = input_items(*present(body, "input"));
  if (request.items.size() == 0 && request.previous_response_id.empty())
    throw wrong("input", "input must have at least 1 items, not 0");
  request.stream = on("stream", false);
  request.store = on("store", true);
  if (const json::Value* tokens = present(body, "max_output_tokens"))
    g.max_tokens = tokens->as_int("max_output_tokens");
  read_tool_fields(body, request);
  if (const json::Value* reasoning = present(body, "reasoning")) read_reasoning(*reasoning, g);
  if (const json::Value* text = present(body, "text"))
    if (const json::Value* format = text->get("format"))
      g.format = openai::read_response_format(*format, g.format_field = "text.format");
  read_logprobs(body, g);
  request.keep_alive = openai::read_keep_alive(body);
  for (const char* key : {"max_output_tokens", "tools", "tool_choice", "text", "reasoning", "temperature", "top_p",
                          "top_logprobs", "metadata"})
    if (const json::Value* value = present(body, key)) request.echo[key] = *value;
  return request;
}

}  // namespace hearth::server::responses
