#include "server/dialects/anthropic_tools.h"

#include <algorithm>
#include <utility>

#include "server/dialects/conversation.h"
#include "server/dialects/openai_chat.h"
#include "server/limits.h"

namespace hearth::server::anthropic {
namespace {

RequestError wrong(std::string_view param, std::string sentence) { return {std::string(param), sentence}; }

std::string text_of(const json::Value& from, std::string_view key) {
  const json::Value* value = from.get(key);
  return value && value->string() ? *value->string() : "";
}

bool is_on(const json::Value& from, std::string_view key, std::string_view param, const std::string& where) {
  const json::Value* value = from.get(key);
  if (value && !value->is_bool()) throw wrong(param, fmt::format("{}.{} must be of type bool", where, key));
  return value && value->as_bool(key);
}

json::Value read_tool(const json::Value& tool, std::string_view param, const std::string& where) {
  const json::Value* name = tool.get("name");
  const json::Value* schema = tool.get("input_schema");
  if (!name || !name->string()) throw wrong(param, where + ".name must be a string");
  if (!schema || !schema->object()) throw wrong(param, where + ".input_schema must be an object");
  return function_tool(*name, tool.get("description"), *schema, tool.get("strict"));
}

}  // namespace

std::string ToolChanges::refer(const json::Value& block, const std::string& where) {
  std::string name = text_of(block, "tool_name");
  if (name.empty()) throw wrong("messages", where + ".tool_name must be a string");
  std::string words = fmt::format("The tool {} can be called now.", name);
  list_.push_back({.name = std::move(name), .tool = {}});
  return words;
}

void ToolChanges::read(const json::Value& block, const std::string& where) {
  const json::Value* tool = block.get("tool");
  Change change{.name = {}, .shown = text_of(block, "type") == "tool_addition", .tool = {}};
  if (tool && text_of(*tool, "type") == "tool_definition" && change.shown) {
    const json::Value* definition = tool->get("definition");
    if (!definition) throw wrong("messages", where + ".tool.definition must be an object");
    change.tool = read_tool(*definition, "messages", where + ".tool.definition");
    change.name = text_of(*definition, "name");
  } else if (tool && text_of(*tool, "type") == "tool_reference") {
    change.name = text_of(*tool, "name");
  }
  if (change.name.empty()) throw wrong("messages", where + ".tool must name a tool");
  list_.push_back(std::move(change));
}

json::Value read_tools(const json::Array& tools, const ToolChanges& changes) {
  struct Known {
    std::string name;
    bool shown;
    json::Value tool;
  };
  // A search that Anthropic's server would do finds nothing here, so that nothing is held back for it.
  const bool searched = std::any_of(tools.begin(), tools.end(), [](const json::Value& tool) {
    return text_of(tool, "type").starts_with("tool_search_tool");
  });
  std::vector<Known> known;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i), type = text_of(tools[i], "type");
    if (tools[i].get("type") && type != "custom" && !tools[i].get("input_schema"))
      continue;  // web_search_..., bash_...
    const bool deferred = is_on(tools[i], "defer_loading", "tools", where);
    known.push_back({text_of(tools[i], "name"), searched || !deferred, read_tool(tools[i], "tools", where)});
  }
  for (const ToolChanges::Change& change : changes.list_) {
    const auto at = std::ranges::find(known, change.name, &Known::name);
    if (at == known.end() && change.tool.is_null()) continue;
    Known next = {change.name, change.shown, change.tool.is_null() ? at->tool : change.tool};
    if (at != known.end()) known.erase(at);
    if (known.size() >= openai::kToolsMax)
      throw RequestError("messages", fmt::format("more than {} tools are added", openai::kToolsMax),
                         std::string(row_of(LimitId::tools).name));
    known.push_back(std::move(next));  // behind those that were there: their prompt stays a prefix
  }
  json::Array list;
  for (Known& one : known)
    if (one.shown) list.push_back(std::move(one.tool));
  if (list.size() == 0) return {};
  json::Value checked = std::move(list);
  openai::check_tools(checked);
  return checked;
}

void read_tool_choice(const json::Value& choice, Generation& g) {
  const std::string word = text_of(choice, "type");
  const json::Value* name = choice.get("name");
  if (word == "tool" && (!name || !name->string())) throw wrong("tool_choice", "tool_choice.name must be a string");
  if (word == "tool") g.tool_choice = openai::read_tool_choice(choice, g.tools);
  else if (word == "any") g.tool_choice = openai::read_tool_choice("required", g.tools);
  else if (word == "auto" || word == "none") g.tool_choice = word;
  else throw wrong("tool_choice", "tool_choice.type must be auto, any, tool or none");
  g.parallel_tool_calls = !is_on(choice, "disable_parallel_tool_use", "tool_choice", "tool_choice");
}

}  // namespace hearth::server::anthropic
