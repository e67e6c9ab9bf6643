// Grammars of a dialect's calls: known tools alone, arguments that their schemas allow (spec server 25, 26).
#pragma once
#include <span>

#include "text/grammar/expr.h"
#include "text/tools/dialect.h"
#include "text/tools/tool_spec.h"

namespace hearth::text {

struct CallGrammar {
  ToolDialect dialect = ToolDialect::generic;
  std::span<const ToolSpec> tools;  // at least one; they outlive the call
  bool parallel_calls = true;       // false: one call and no more
};

// What follows the opener (ToolShape): one call, and with parallel_calls any number more. What it lets through,
// AnswerParser reads as calls whose arguments validate. Throws Error{invalid_argument} for a schema that cannot be held
// to, and for a tool whose name the dialect cannot spell.
Expr calls_behind_opener(GrammarBuilder& builder, const CallGrammar& grammar);

// An answer of calls and nothing else.
Expr answer_of_calls(GrammarBuilder& builder, const CallGrammar& grammar);

// Any answer, with calls as above once one begins: for dialects whose opener may be missing (ToolShape). There a call
// begins with begins_bare_call() of a tool, at the start of the answer.
Expr answer_with_calls(GrammarBuilder& builder, const CallGrammar& grammar);

namespace tools {
// Up to and with the quote behind the name.
std::string begins_bare_call(ToolDialect dialect, std::string_view name);
}  // namespace tools

}  // namespace hearth::text
