#include "text/tools/dialect.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "text/tokenizer.h"

namespace hearth::text {
namespace {

constexpr std::array<std::pair<ToolDialect, std::string_view>, 8> kNames = {
    {{ToolDialect::hermes, "hermes"},
     {ToolDialect::qwen3_coder, "qwen3-coder"},
     {ToolDialect::minicpm5, "minicpm5"},
     {ToolDialect::gemma4, "gemma4"},
     {ToolDialect::llama3, "llama3"},
     {ToolDialect::mistral, "mistral"},
     {ToolDialect::mistral_args, "mistral-args"},
     {ToolDialect::generic, "generic"}}};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::string_view name_of(ToolDialect dialect) {
  for (const auto& [value, name] : kNames)
    if (value == dialect) return name;
  HEARTH_CHECK(false, "tool dialect {}", static_cast<int>(dialect));
  return {};
}

ToolDialect tool_dialect(std::string_view name) {
  std::string all;
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
    all += all.empty() ? "" : ", ";
    all += known;
  }
  fail(ErrorKind::invalid_argument, "tool dialect \"{}\" is not one of {}", printable(name, 60), all);
}

ToolDialect choose_dialect(std::string_view source, const std::function<bool(std::string_view)>& has_piece) {
  if (!has(source, "tools")) return ToolDialect::generic;
  // The more specific spelling first: Qwen3-Coder's markup stands inside Hermes' tags.
  if (has(source, "<|tool_call>")) return ToolDialect::gemma4;
  if (has(source, "<function=") && has(source, "<parameter=")) return ToolDialect::qwen3_coder;
  if (has(source, "<function name=") && has(source, "<param name=")) return ToolDialect::minicpm5;
  if (has(source, "[TOOL_CALLS]")) return has(source, "[ARGS]") ? ToolDialect::mistral_args : ToolDialect::mistral;
  if (has(source, "<arg_key>")) return ToolDialect::generic;  // GLM's own notation in the same outer tags
  if (has(source, "<tool_call>")) return ToolDialect::hermes;
  if (has(source, "<|python_tag|>") || (has(source, "ipython") && has(source, "\"parameters\"")))
    return ToolDialect::llama3;
  if (has_piece("<|tool_call>")) return ToolDialect::gemma4;
  if (has_piece("<function") && has_piece("<param")) return ToolDialect::minicpm5;
  if (has_piece("[TOOL_CALLS]")) return has_piece("[ARGS]") ? ToolDialect::mistral_args : ToolDialect::mistral;
  if (has_piece("<|python_tag|>")) return ToolDialect::llama3;
  if (has_piece("<tool_call>")) return ToolDialect::hermes;
  return ToolDialect::generic;
}

ToolDialect choose_dialect(std::string_view source, const Tokenizer& tokenizer) {
  return choose_dialect(source, [&](std::string_view piece) { return tokenizer.id_of(piece).has_value(); });
}

ToolShape tool_shape(ToolDialect dialect) {
  switch (dialect) {
    case ToolDialect::qwen3_coder:
      return {.opener = "<tool_call>",
              .before_name = "\n<function=",
              .after_name = ">\n",
              .form = ArgumentForm::xml_parameters,
              .before_key = "<parameter=",
              .after_key = ">\n",
              .after_value = "\n</parameter>\n",
              .after_arguments = "</function>\n</tool_call>",
              .between = "\n<tool_call>"};
    case ToolDialect::minicpm5:
      return {.opener = "<function",
              .before_name = " name=\"",
              .after_name = "\">",
              .form = ArgumentForm::xml_parameters,
              .before_key = "<param name=\"",
              .after_key = "\">",
              .after_value = "</param>",
              .after_arguments = "</function>",
              .between = "\n<function",
              .quote_open = "<![CDATA[",
              .quote_close = "]]>"};
    case ToolDialect::gemma4:
      return {.opener = "<|tool_call>",
              .before_name = "call:",
              .form = ArgumentForm::gemma_values,
              .after_arguments = "<tool_call|>",
              .between = "<|tool_call>"};
    case ToolDialect::llama3:
      return {.opener = "<|python_tag|>",
              .before_name = "{\"name\": \"",
              .after_name = "\", \"parameters\": ",
              .after_arguments = "}",
              .between = "; ",
              .opener_optional = true};
    case ToolDialect::mistral:
      return {.opener = "[TOOL_CALLS]",
              .before_name = "{\"name\": \"",
              .after_name = "\", \"arguments\": ",
              .after_arguments = "}",
              .between = ", ",
              .closer = "]",
              .list_open = " ["};
    case ToolDialect::mistral_args:
      return {.opener = "[TOOL_CALLS]", .after_name = "[ARGS]", .between = "[TOOL_CALLS]"};
    case ToolDialect::hermes:
    case ToolDialect::generic: break;
  }
  return {.opener = "<tool_call>",
          .before_name = "\n{\"name\": \"",
          .after_name = "\", \"arguments\": ",
          .after_arguments = "}\n</tool_call>",
          .between = "\n<tool_call>"};
}

}  // namespace hearth::text
