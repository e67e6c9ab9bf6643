#include "server/worker/answer_grammar.h"

#include <algorithm>

#include "base/error.h"
#include "server/request_error.h"
#include "text/grammar/expr.h"
#include "text/grammar/grammar.h"
#include "text/tools/call_grammar.h"

namespace hearth::server {
namespace {

using text::Expr;
using text::GrammarBuilder;

constexpr size_t kKeptMax = 32;

// The grammar's constraint on the engine thread.
class AnswerConstraint final : public decode::Constraint {
 public:
  explicit AnswerConstraint(text::Constraint constraint) : constraint_(std::move(constraint)) {}
  void apply(std::span<float> logits) override { constraint_.apply(logits); }
  void accept(int32_t id) override { constraint_.accept(id); }
  bool finished() const override { return constraint_.done(); }

 private:
  text::Constraint constraint_;
};

std::string_view kind_of(const json::Value& format) {
  const json::Value* kind = format.get("kind");
  return kind && kind->string() ? std::string_view(*kind->string()) : "";
}

// The field of a request that a grammar comes from.
std::string field_of(const Generation& g, const Prompt& prompt) {
  const std::string_view kind = kind_of(g.format);
  const bool of_json = kind.empty() || kind == "json_object" || kind == "json_schema";
  return of_json && !prompt.tools.empty() ? "tools" : g.format_field;
}

enum class Choice : uint8_t { none, automatic, required, named };
Choice choice_of(const Generation& g, const Prompt& prompt) {
  if (prompt.tools.empty()) return Choice::none;
  if (g.tool_choice.object()) return Choice::named;
  const std::string* word = g.tool_choice.string();
  return word && *word == "required" ? Choice::required : Choice::automatic;
}

Expr format_expr(GrammarBuilder& b, const json::Value& format, const text::JsonOptions& options) {
  if (kind_of(format) == "json_object") return b.json_object(options);
  return b.json_schema(*format.get("value"), options);
}

text::GrammarPtr format_grammar(const json::Value& format, const text::JsonOptions& options,
                                const text::GrammarLimits& limits) {
  const std::string_view kind = kind_of(format);
  const json::Value* value = format.get("value");
  if (kind == "json_object") return text::compile_json_object(options, limits);
  HEARTH_CHECK(value, "a format of kind {} without a value", kind);
  if (kind == "json_schema") return text::compile_json_schema(*value, options, limits);
  if (kind == "regex") return text::compile_regex(value->as_string("regex"), limits);
  if (kind == "grammar") return text::compile_ebnf(value->as_string("grammar"), limits);
  HEARTH_CHECK(kind == "choice", "a format of kind {}", kind);
  std::vector<std::string> words;
  for (const json::Value& word : value->as_array("choice")) words.push_back(word.as_string("choice"));
  return text::compile_choice(words, limits);
}

}  // namespace

AnswerGrammars::AnswerGrammars(const PromptModel& model)
    : model_(model),
      vocabulary_(
          std::make_shared<const text::VocabularyIndex>(model.text.tokenizer(), model.end_ids, model.call_markup)) {}

text::GrammarPtr AnswerGrammars::kept(const std::string& key, const std::function<text::GrammarPtr()>& compile) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) { return k.first == key; });
  if (found != kept_.end()) {
    std::rotate(kept_.begin(), found, found + 1);
    return kept_.front().second;
  }
  text::GrammarPtr grammar = compile();
  vocabulary_->warm(*grammar);
  kept_.emplace_front(key, grammar);
  if (kept_.size() > kKeptMax) kept_.pop_back();
  return grammar;
}

text::GrammarPtr AnswerGrammars::compiled(const Generation& g, const Prompt& prompt, Scope scope) {
  std::vector<text::ToolSpec> tools = prompt.tools;
  if (choice_of(g, prompt) == Choice::named)
    std::erase_if(tools, [&](const text::ToolSpec& t) { return t.name != *g.tool_choice.get("name")->string(); });
  std::string key = fmt::format("{} {} {} {}", static_cast<int>(scope), g.parallel_tool_calls, g.any_whitespace,
                                json::dump(g.format));
  if (!tools.empty()) key += json::dump(text::tools_for_template(tools));
  return kept(key, [&] {
    try {
      return fresh(g, prompt, tools, scope);
    } catch (const Error& error) {
      throw RequestError(field_of(g, prompt), error.what(), limit_of(error));
    }
  });
}

text::GrammarPtr AnswerGrammars::fresh(const Generation& g, const Prompt& prompt, std::span<const text::ToolSpec> tools,
                                       Scope scope) const {
  const text::JsonOptions options{.any_whitespace = g.any_whitespace};
  if (tools.empty()) return format_grammar(g.format, options, model_.limits.grammar());
  const text::CallGrammar calls{.dialect = model_.dialect, .tools = tools, .parallel_calls = g.parallel_tool_calls};
  GrammarBuilder b(model_.limits.grammar());
  if (scope == Scope::behind_opener) return b.compile(text::calls_behind_opener(b, calls));
  if (scope == Scope::free_or_calls) return b.compile(text::answer_with_calls(b, calls));
  Expr all = text::answer_of_calls(b, calls);
  // Tools and a format together: the answer is one or the other.
  if (!g.format.is_null() && choice_of(g, prompt) == Choice::automatic)
    all = b.choice({all, format_expr(b, g.format, options)});
  return b.compile(all);
}

AnswerGrammars::Made AnswerGrammars::make(const Generation& g, const Prompt& prompt) {
  const Choice choice = choice_of(g, prompt);
  const text::ToolShape shape = text::tool_shape(model_.dialect);
  if (choice != Choice::none && !g.format.is_null() && kind_of(g.format) != "json_object" &&
      kind_of(g.format) != "json_schema")
    throw RequestError(field_of(g, prompt),
                       fmt::format("tools go together with a JSON format only, not with {}", kind_of(g.format)));
  if (g.format.is_null() && choice == Choice::none) return {};

  text::ConstraintOptions options;
  text::GrammarPtr grammar;
  const bool automatic = choice == Choice::automatic && g.format.is_null();
  // A call that opens the answer has no marker to wait for, and behind reasoning nothing says where an answer begins.
  const bool unmarked = shape.opener_optional;
  if (automatic && (!g.tool_grammar || (unmarked && model_.reasoning))) return {};
  if (automatic && unmarked) {
    grammar = compiled(g, prompt, Scope::free_or_calls);
  } else if (automatic) {
    options.begin = text::ConstraintOptions::Begin::at_marker;
    options.marker = shape.opener;
    options.then = g.parallel_tool_calls ? text::ConstraintOptions::Then::free : text::ConstraintOptions::Then::end;
    grammar = compiled(g, prompt, Scope::behind_opener);
  } else {
    grammar = compiled(g, prompt, Scope::whole_answer);
    const bool thinks = model_.reasoning && (prompt.reasoning_open || thinking_of(g, model_).value_or(false));
    if (thinks) {
      options.begin = text::ConstraintOptions::Begin::behind;
      options.marker = model_.reasoning->close;
      grammar = text::with_leading_space(grammar);
    }
  }
  return {.constraint = std::make_shared<AnswerConstraint>(text::Constraint(grammar, vocabulary_, std::move(options))),
          .shapes_calls = choice != Choice::none && !(unmarked && choice == Choice::automatic && !automatic),
          .waits_for_calls = automatic};
}

}  // namespace hearth::server
