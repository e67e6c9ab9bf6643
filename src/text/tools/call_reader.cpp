#include "text/tools/call_reader.h"

#include <array>

namespace hearth::text::tools {
namespace {

using Words = std::array<std::string_view, 2>;
// Qwen3-Coder leaves out the outer tag now and then, but not its end.
constexpr Words kHermes = {"<tool_call>"}, kQwen = {"<tool_call>", "<function="}, kMiniCpm = {"<function"},
                kGemma = {"<|tool_call>"}, kLlama = {"<|python_tag|>", "{"}, kMistral = {"[TOOL_CALLS]"};

const Words& words(ToolDialect dialect) {
  switch (dialect) {
    case ToolDialect::qwen3_coder: return kQwen;
    case ToolDialect::minicpm5: return kMiniCpm;
    case ToolDialect::gemma4: return kGemma;
    case ToolDialect::llama3: return kLlama;
    case ToolDialect::mistral:
    case ToolDialect::mistral_args: return kMistral;
    case ToolDialect::hermes:
    case ToolDialect::generic: break;
  }
  return kHermes;
}

}  // namespace

std::span<const std::string_view> openers(ToolDialect dialect) {
  const Words& all = words(dialect);
  return std::span(all).first(all[1].empty() ? 1 : 2);
}

std::string_view dropped_after_call(ToolDialect dialect) {
  if (dialect == ToolDialect::qwen3_coder) return "</tool_call>";
  return dialect == ToolDialect::llama3 ? ";" : "";
}

std::unique_ptr<CallReader> make_call_reader(ToolDialect dialect, std::span<const ToolSpec> tools) {
  switch (dialect) {
    case ToolDialect::qwen3_coder:
    case ToolDialect::minicpm5: return make_xml_calls(dialect, tools);
    case ToolDialect::gemma4: return make_gemma_calls(tools);
    default: return make_json_calls(dialect, tools);
  }
}

}  // namespace hearth::text::tools
