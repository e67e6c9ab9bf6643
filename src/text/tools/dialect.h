// How model families write calls of tools (spec server 23).
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace hearth::text {

class Tokenizer;

enum class ToolDialect {
  hermes,        // <tool_call> JSON </tool_call>: Hermes, Qwen2, Qwen2.5, Qwen3
  qwen3_coder,   // <tool_call><function=NAME><parameter=KEY>value</parameter></function></tool_call>: also Qwen3.5
  minicpm5,      // <function name="NAME"><param name="KEY">value</param></function>
  gemma4,        // <|tool_call>call:NAME{key:value}<tool_call|>
  llama3,        // {"name": NAME, "parameters": {...}} at the start of the answer, or behind <|python_tag|>
  mistral,       // [TOOL_CALLS] [{"name": NAME, "arguments": {...}}]
  mistral_args,  // [TOOL_CALLS]NAME[ARGS]{...}: Mistral from 2025 on
  generic,       // the template knows no tools or no known markup: described in the system text, answered as hermes
};

// "hermes", "qwen3-coder", "minicpm5", "gemma4", "llama3", "mistral", "mistral-args", "generic".
std::string_view name_of(ToolDialect dialect);
// Throws Error{invalid_argument} that lists the names.
ToolDialect tool_dialect(std::string_view name);

// By the markup that the template writes; a template that reads `tools` but spells no known markup is judged by the
// markup tokens of the vocabulary. The second form asks `has_piece` for a token's spelling. Any thread.
ToolDialect choose_dialect(std::string_view template_source, const Tokenizer& tokenizer);
ToolDialect choose_dialect(std::string_view template_source, const std::function<bool(std::string_view)>& has_piece);

enum class ArgumentForm {
  json_object,     // a JSON object
  xml_parameters,  // before_key KEY after_key VALUE after_value, once an argument: strings as they are, others as JSON
  gemma_values,    // {key:value,...} with bare keys, strings between the marks <|"|>, others as JSON
};

// A dialect's markup as data, for building a grammar. An answer's calls are
//   opener list_open CALL (between CALL)* closer,   CALL = before_name NAME after_name ARGUMENTS after_arguments
// What such text says is what AnswerParser reads from it, for strings that do not hold after_value or the mark <|"|>.
struct ToolShape {
  std::string_view opener;
  std::string_view before_name, after_name;
  ArgumentForm form = ArgumentForm::json_object;
  std::string_view before_key, after_key, after_value;  // xml_parameters alone
  std::string_view after_arguments;
  std::string_view between;
  std::string_view closer, list_open;
  bool opener_optional = false;  // at the start of an answer
  // xml_parameters: what encloses strings that hold &, < or a line break; empty: nothing needs it
  std::string_view quote_open, quote_close;
};
ToolShape tool_shape(ToolDialect dialect);

}  // namespace hearth::text
