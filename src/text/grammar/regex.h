// Regular expressions to grammar parts. Internal to text/grammar; the syntax stands at compile_regex in grammar.h.
#pragma once
#include <string_view>

#include "text/grammar/expr.h"

namespace hearth::text::grammar {

struct RegexUse {
  Encoding encoding = Encoding::raw;
  bool search = false;  // as JSON Schema's `pattern`: any text may stand around the match unless ^ and $ forbid it
  std::string_view what = "regex";  // for errors
};
// Throws Error{invalid_argument} with what and the byte. No recursion, time linear in the pattern and its classes.
Expr regex_expr(GrammarBuilder& builder, std::string_view pattern, const RegexUse& use);

// The same as one automaton.
Dfa regex_dfa(GrammarBuilder& builder, std::string_view pattern, const RegexUse& use);

}  // namespace hearth::text::grammar
