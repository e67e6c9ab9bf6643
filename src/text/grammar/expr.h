// Grammars from parts: for tool-call dialects, and what the compile functions of grammar.h are made of.
//
//   GrammarBuilder b;
//   const Expr call = b.sequence({b.literal("<tool_call>\n{\"name\": "), b.choice({b.literal("\"add\""), ...}),
//                                 b.literal(", \"arguments\": "), b.json_schema(schema, {}),
//                                 b.literal("}\n</tool_call>")});
//   GrammarPtr grammar = b.compile(call);
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/dfa.h"
#include "text/grammar/grammar.h"
#include "text/grammar/points.h"

namespace hearth::text {

struct ArgumentNotation;  // arguments.h

// A part made by one GrammarBuilder and of use with that one alone. May stand in several places.
struct Expr {
  uint32_t index = 0;
};
struct RuleId {
  uint32_t index = 0;
};

// One thread at a time. Every method may throw Error{invalid_argument} when the grammar grows beyond its limits.
class GrammarBuilder {
 public:
  static constexpr uint32_t kUnbounded = ~0u;

  explicit GrammarBuilder(const GrammarLimits& limits = {});

  Expr empty();
  Expr literal(std::string_view bytes);
  Expr bytes(const grammar::ByteSet& set);
  // One code point of the set; as it stands in a JSON string with Encoding::json.
  Expr points(const grammar::Points& set, grammar::Encoding encoding = grammar::Encoding::raw);
  Expr automaton(grammar::DfaPtr dfa);
  Expr apart(grammar::DfaPtr dfa);  // the same, never made one with its neighbours: all its uses share their masks
  Expr sequence(std::vector<Expr> parts);
  Expr choice(std::vector<Expr> parts);  // none: accepts nothing
  Expr repeat(Expr part, uint32_t min, uint32_t max = kUnbounded);
  Expr optional(Expr part) { return repeat(part, 0, 1); }

  // Rules may refer to each other before they are defined; recursion is theirs alone. Left recursion is refused.
  RuleId rule(std::string name);
  void define(RuleId rule, Expr body);
  Expr call(RuleId rule);

  Expr json_schema(const json::Value& schema, const JsonOptions& options);
  Expr json_object(const JsonOptions& options);
  // A tool's arguments where a dialect writes them in another way than as a JSON object.
  Expr arguments(const json::Value& schema, const ArgumentNotation& notation);
  Expr regex(std::string_view pattern);

  // Throws Error{invalid_argument}: a rule without a definition, left recursion, a grammar that accepts no text; and
  // LimitError for rules that begin with one another deeper than limits().depth.
  GrammarPtr compile(Expr root);

  // For the parts of text/grammar. The automaton of an expression without recursion; `what` names it in errors.
  grammar::Dfa to_dfa(Expr e, std::string_view what);
  // min and max copies of one character (or another prefix-free automaton), if `e` is that.
  struct Counted {
    grammar::DfaPtr unit;
    uint32_t min, max;
  };
  std::optional<Counted> as_counted(Expr e) const;
  Expr counted(grammar::DfaPtr unit, uint32_t min, uint32_t max);
  grammar::Budget& budget() { return budget_; }
  const GrammarLimits& limits() const { return limits_; }
  // One part for each key: what many schemas have in common is made once.
  Expr kept(const std::string& key, const std::function<Expr()>& make);

  enum class Kind : uint8_t { empty, literal, automaton, counted, sequence, choice, repeat, rule };
  struct Node {
    Kind kind = Kind::empty;
    uint32_t a = 0;  // literal, automaton, counted: index; sequence, choice: first child; repeat: child; rule: id
    uint32_t b = 0;  // sequence, choice: number of children
    uint32_t min = 0, max = 0;  // counted, repeat; automaton: min is 1 where it stands apart
  };
  struct Rule {
    std::string name;
    std::optional<uint32_t> body;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<uint32_t>& children() const { return children_; }
  const std::vector<std::string>& literals() const { return literals_; }
  const std::vector<grammar::DfaPtr>& automata() const { return automata_; }
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  Expr add(const Node& node);
  Expr add_list(Kind kind, const std::vector<Expr>& parts);

  const GrammarLimits limits_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> children_;
  std::vector<std::string> literals_;
  std::vector<grammar::DfaPtr> automata_;
  std::vector<Rule> rules_;
  std::map<std::pair<grammar::Points, grammar::Encoding>, uint32_t> points_;
  std::map<std::string, Expr> kept_;
  grammar::Budget budget_;
};

}  // namespace hearth::text
