// Tools of Anthropic's dialect: which of them the model is shown, and how it may choose.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "server/generation.h"

namespace hearth::server::anthropic {

// What a conversation does to the list of tools, in its order. Tools with defer_loading are held back until a result of
// a search refers to them; system messages add tools and take them away.
class ToolChanges {
 public:
  // {type: "tool_reference", tool_name} in a result; gives the words that stand there for the model. Throws
  // RequestError naming `where`.
  std::string refer(const json::Value& block, const std::string& where);

  // {type: "tool_addition" or "tool_removal", tool: {type: "tool_reference", name} or {type: "tool_definition",
  // definition}} in a system message. Throws RequestError naming `where`.
  void read(const json::Value& block, const std::string& where);

 private:
  struct Change {
    std::string name;
    bool shown = true;
    json::Value tool;  // null: one of the list
  };
  std::vector<Change> list_;

  friend json::Value read_tools(const json::Array&, const ToolChanges&);
};

// The functions that the model is shown; null: none. Types of tools that run at Anthropic are left out. Throws
// RequestError naming the tool.
json::Value read_tools(const json::Array& tools, const ToolChanges& changes);

// Throws RequestError; g.tools must be read.
void read_tool_choice(const json::Value& choice, Generation& g);

}  // namespace hearth::server::anthropic
