// What an answer may look like, compiled (server.md 25 to 29). The doors into text/grammar: this file makes grammars,
// expr.h composes them, vocabulary.h and matcher.h hold them against tokens, constraint.h is what a sampler uses.
//
//   GrammarPtr grammar = compile_json_schema(schema, {});
//   auto vocabulary = std::make_shared<const VocabularyIndex>(tokenizer, tokenizer.end_ids());  // once a model
//   Constraint constraint(grammar, vocabulary, {});                                             // once an answer
//   constraint.apply(logits); constraint.accept(id);                                            // once a token
//
// A grammar is a pushdown automaton over bytes with finite automata for its regular parts. Compiling uses no recursion
// and is bounded by GrammarLimits: what is over one throws LimitError with its name. All compile functions throw
// Error{invalid_argument} with the place and the reason for what they cannot hold to exactly; nothing is ignored.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth::text {

namespace grammar {
struct Program;
}

struct GrammarLimits {
  size_t bytes = 256 << 10;  // of a source
  int depth = 64;            // of groups, schemas and rules in each other
  int64_t work = 8'000'000;  // steps of compiling: about 500 ms and 64 MiB, the same on every machine
};
inline constexpr std::string_view kGrammarBytes = "grammar-bytes", kGrammarDepth = "grammar-depth",
                                  kGrammarWork = "grammar-work";

// Immutable: any thread, any number of matchers at once.
class Grammar {
 public:
  explicit Grammar(std::unique_ptr<const grammar::Program> program);
  ~Grammar();
  const grammar::Program& program() const { return *program_; }

 private:
  std::unique_ptr<const grammar::Program> program_;
};
using GrammarPtr = std::shared_ptr<const Grammar>;

// At one place: a line break and the indentation of deep values; a model that would write white space for ever stops.
constexpr uint32_t kWhitespaceMax = 128;

struct JsonOptions {
  // Up to kWhitespaceMax characters of JSON's white space between all parts; else at most one space after ':' and ','.
  bool any_whitespace = false;
  // Numbers that a double holds for certain: 200 digits on either side of the point, two in the exponent.
  bool doubles = false;
};

// Texts that are JSON values valid against a schema. Members stand in the schema's order, then others that it allows.
// A name that the schema declares (properties, required) comes once at most. Others may come again, in free objects
// too: which of them came is more than an automaton of bounded size can hold, and readers of JSON take the last one.
// Keywords: those of server.md 28; `allOf` is merged, `oneOf` must be provably disjoint. A schema without `type` whose
// keywords belong to some types means these types. Strings bound by pattern, format, enum or const and member names
// have one spelling (JSON escapes only where JSON needs them). Numbers with bounds have no exponent. The Error names
// keyword and path: `schema keyword "not" at $.properties.x is not supported`.
GrammarPtr compile_json_schema(const json::Value& schema, const JsonOptions& options, const GrammarLimits& limits = {});

// Any JSON object.
GrammarPtr compile_json_object(const JsonOptions& options = {}, const GrammarLimits& limits = {});

// Texts that match as a whole. Unicode: `.` is any character but a newline; \d \w \s \p{L} and their complements go by
// Unicode's properties. Groups (also named; they capture nothing), | * + ? {m,n} (lazy ones mean the same set),
// classes,
// \xHH \uHHHH \u{H}. `^` and `$` stand at the ends of an alternative alone. Look-around, back-references, \b, inline
// flags and possessive repeats are Errors, and so is a repeat of an unbounded repeat: (a+)+.
GrammarPtr compile_regex(std::string_view pattern, const GrammarLimits& limits = {});

// Context-free grammars without left recursion, at most 4,096 rules. Two notations:
//   GBNF of llama.cpp: `root ::= ...`, "text", [class], ., ( ), |, * + ? {m,n}, # comments, rule names a-z A-Z 0-9 - _
//   a subset of Lark: `start: ...`, "text" and "text"i, /regex/, "a".."z", ( ), [ ], |, * + ?, ~ n, ~ m..n, //
//   comments.
//     Templates, imports, %ignore, priorities and aliases are Errors.
// A text with `::=` outside of quotes is GBNF. The start rule is `root` or `start`.
GrammarPtr compile_ebnf(std::string_view text, const GrammarLimits& limits = {});

// One of these texts. Throws for none, or one that is empty.
GrammarPtr compile_choice(std::span<const std::string> texts, const GrammarLimits& limits = {});

// The same texts behind up to 32 characters of white space: answers behind a marker such as </think>.
GrammarPtr with_leading_space(const GrammarPtr& grammar);

}  // namespace hearth::text
