#include "text/tools/call_grammar.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "text/grammar/arguments.h"
#include "text/grammar/points.h"
#include "text/grammar/text_dfa.h"
#include "text/tools/argument_writer.h"

namespace hearth::text {
namespace {

using grammar::Dfa;

constexpr size_t kNameMax = 256;  // of what the readers take for a name
constexpr std::string_view kMark = "<|\"|>";

// Whether a dialect that does not quote names can spell this one, as its reader takes it.
bool spells(std::string_view name, std::string_view never) {
  return !name.empty() && name.size() <= kNameMax && name.find_first_of(never) == std::string_view::npos &&
         tools::without_blanks(name) == name;
}

std::string_view never_in_names(ToolDialect dialect) {
  switch (dialect) {
    case ToolDialect::qwen3_coder: return "<>\n";
    case ToolDialect::minicpm5: return "<>\n\"";
    case ToolDialect::gemma4: return "<{";
    case ToolDialect::mistral_args: return "<{[\n";
    default: return {};  // JSON strings
  }
}

std::string spelled_name(ToolDialect dialect, const std::string& name) {
  const std::string_view never = never_in_names(dialect);
  if (never.empty()) return grammar::json_escaped(name);
  if (!spells(name, never))
    fail(ErrorKind::invalid_argument, "the tool \"{}\" has a name that calls of the family {} cannot spell",
         printable(name, 60), name_of(dialect));
  return name;
}

json::Value parameters_of(const ToolSpec& tool) {
  json::Object schema = tool.parameters.object() ? *tool.parameters.object() : json::Object();
  const json::Value* type = schema.find("type");
  const auto is_object = [](const json::Value& one) { return one.string() && *one.string() == "object"; };
  // A schema that leaves the type open, or allows others beside it, means an object here: arguments are nothing else.
  const bool refers = schema.contains("$ref") || schema.contains("anyOf") || schema.contains("oneOf") ||
                      schema.contains("allOf") || schema.contains("enum") || schema.contains("const");
  if (type ? type->array() && std::ranges::any_of(*type->array(), is_object) : !refers) schema["type"] = "object";
  else if (type && !is_object(*type))
    fail(ErrorKind::invalid_argument, "tool {}: its parameters are no object: their type must be object", tool.name);
  return schema;
}

ArgumentNotation notation_of(ToolDialect dialect, const ToolShape& shape, const json::Value& parameters) {
  ArgumentNotation n;
  n.rule = [&parameters](const std::string& name) {
    switch (tools::string_rule(parameters, name)) {
      case tools::StringRule::no: return ArgumentNotation::Rule::json;
      case tools::StringRule::yes: return ArgumentNotation::Rule::text;
      case tools::StringRule::nullable: break;
    }
    return ArgumentNotation::Rule::text_or_null;
  };
  if (shape.form == ArgumentForm::gemma_values) {
    n.form = ArgumentNotation::Form::marked;
    n.mark = kMark;
    return n;
  }
  n.has_name = [never = never_in_names(dialect)](const std::string& name) { return spells(name, never); };
  n.before_key = shape.before_key;
  n.after_key = shape.after_key;
  n.close = tools::without_blanks(shape.after_value);
  n.line_break = shape.after_value.starts_with('\n');
  if (shape.after_value.ends_with('\n')) n.after_close = "\n";
  n.section_open = shape.quote_open;
  n.section_close = shape.quote_close;
  return n;
}

Expr any_text(GrammarBuilder& b) { return b.repeat(b.points(grammar::negated({}), grammar::Encoding::raw), 0); }

}  // namespace

Expr calls_behind_opener(GrammarBuilder& b, const CallGrammar& g) {
  const ToolShape shape = tool_shape(g.dialect);
  std::vector<Expr> one;
  for (const ToolSpec& tool : g.tools) {
    const json::Value parameters = parameters_of(tool);
    const std::string name = spelled_name(g.dialect, tool.name);
    const Expr arguments = shape.form == ArgumentForm::json_object
                               ? b.json_schema(parameters, {.doubles = true})
                               : b.arguments(parameters, notation_of(g.dialect, shape, parameters));
    one.push_back(b.sequence({b.literal(fmt::format("{}{}{}", shape.before_name, name, shape.after_name)), arguments,
                              b.literal(shape.after_arguments)}));
  }
  const Expr call = b.choice(std::move(one));
  std::vector<Expr> parts = {b.literal(shape.list_open), call};
  if (g.parallel_calls) parts.push_back(b.repeat(b.sequence({b.literal(shape.between), call}), 0));
  parts.push_back(b.literal(shape.closer));
  return b.sequence(std::move(parts));
}

Expr answer_of_calls(GrammarBuilder& b, const CallGrammar& g) {
  const ToolShape shape = tool_shape(g.dialect);
  const Expr opener = b.literal(shape.opener);
  return b.sequence({shape.opener_optional ? b.optional(opener) : opener, calls_behind_opener(b, g)});
}

Expr answer_with_calls(GrammarBuilder& b, const CallGrammar& g) {
  const ToolShape shape = tool_shape(g.dialect);
  HEARTH_CHECK(shape.opener_optional);
  grammar::Budget& budget = b.budget();
  const Expr calls = calls_behind_opener(b, g);
  std::vector<Expr> begins;
  for (const ToolSpec& tool : g.tools) begins.push_back(b.literal(tools::begins_bare_call(g.dialect, tool.name)));
  const Expr blanks = b.regex("[ \\t\\r\\n]*");
  const Expr rest = b.repeat(b.bytes(grammar::ByteSet::all()), 0);
  const Dfa bare = b.to_dfa(b.sequence({blanks, b.choice(std::move(begins)), rest}), "calls without their opener");
  const auto free = [&](const Dfa& rule, Expr text) {
    const Dfa all = intersection(b.to_dfa(text, "free text"), rule, budget);
    return b.apart(std::make_shared<const Dfa>(difference(all, bare, budget)));
  };
  const Expr text = free(grammar::without_text(shape.opener, budget), any_text(b));
  const Expr opened =
      free(grammar::up_to_text(shape.opener, budget), b.sequence({any_text(b), b.literal(shape.opener)}));
  return b.choice({text, b.sequence({opened, calls}), b.sequence({blanks, calls})});
}

namespace tools {

std::string begins_bare_call(ToolDialect dialect, std::string_view name) {
  return fmt::format("{}{}\"", tool_shape(dialect).before_name, grammar::json_escaped(name));
}

}  // namespace tools
}  // namespace hearth::text
