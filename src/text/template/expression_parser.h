// The expressions of templates, by recursive descent; parser.cpp adds the statements.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/lexer.h"

namespace hearth::text::jinja {

inline constexpr int kExprDepthMax = 100;
inline constexpr int kBlockDepthMax = 60;
inline constexpr int kGrammarDepthMax = 150;  // open brackets and prefix operators while parsing

using Names = std::initializer_list<std::string_view>;

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view source) : tokens_(tokenize(source)) {}

 protected:
  // ---- tokens ----

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& t = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool skip_op(std::string_view s) { return now().is_op(s) && (take(), true); }
  bool skip_name(std::string_view s) { return now().is_name(s) && (take(), true); }

  [[noreturn]] void error(const std::string& what, int line) const { throw SyntaxFault(what, line); }
  [[noreturn]] void error(const std::string& what) const { error(what, now().line); }

  static std::string describe(const Token& t) {
    switch (t.kind) {
      case TokenKind::data: return "text";
      case TokenKind::variable_begin: return "'{{'";
      case TokenKind::variable_end: return "'}}'";
      case TokenKind::block_begin: return "'{%'";
      case TokenKind::block_end: return "'%}'";
      case TokenKind::end: return "the end of the template";
      case TokenKind::integer: return "an integer";
      case TokenKind::floating: return "a float";
      case TokenKind::string: return "a string";
      case TokenKind::name:
      case TokenKind::op: break;
    }
    return fmt::format("'{}'", t.text);
  }
  void expect_op(std::string_view s) {
    if (!skip_op(s)) error(fmt::format("expected '{}', found {}", s, describe(now())));
  }
  void expect_name(std::string_view s) {
    if (!skip_name(s)) error(fmt::format("expected '{}', found {}", s, describe(now())));
  }
  std::string_view any_name() {
    if (now().kind != TokenKind::name) error(fmt::format("expected a name, found {}", describe(now())));
    return take().text;
  }
  void expect(TokenKind kind) {
    if (now().kind != kind) {
      Token wanted;
      wanted.kind = kind;
      error(fmt::format("expected {}, found {}", describe(wanted), describe(now())));
    }
    take();
  }

  // ---- nodes ----

  Expr* make(ExprKind kind, int line, std::vector<const Expr*> args = {}) {
    auto e = std::make_unique<Expr>();
    e->kind = kind;
    e->line = line;
    e->args = std::move(args);
    for (const Expr* a : e->args)
      if (a) deepen(*e, a);
    ast_.exprs.push_back(std::move(e));
    return ast_.exprs.back().get();
  }
  void deepen(Expr& e, const Expr* child) {
    e.depth = std::max(e.depth, child->depth + 1);
    if (e.depth > kExprDepthMax) error(fmt::format("expressions nest more than {} deep", kExprDepthMax), e.line);
  }
  void add_arg(Expr& e, const Expr* child) {
    e.args.push_back(child);
    deepen(e, child);
  }
  void set_call(Expr& e, CallArgs call) {
    for (const Expr* a : call.positional) deepen(e, a);
    for (const auto& [name, a] : call.named) deepen(e, a);
    if (call.star) deepen(e, call.star);
    if (call.star_star) deepen(e, call.star_star);
    e.call = std::move(call);
  }
  Expr* constant(const Value& v, int line) {
    Expr* e = make(ExprKind::constant, line);
    e->value = v;
    return e;
  }
  Expr* name(std::string_view s, int line) {
    Expr* e = make(ExprKind::name, line);
    e->symbol = ast_.intern(s);
    for (MacroDef* m : macros_) {
      m->uses_caller |= s == "caller";
      m->uses_varargs |= s == "varargs";
      m->uses_kwargs |= s == "kwargs";
    }
    return e;
  }
  Stmt* make(StmtKind kind, int line) {
    ast_.stmts.push_back(std::make_unique<Stmt>());
    Stmt* s = ast_.stmts.back().get();
    s->kind = kind;
    s->line = line;
    return s;
  }
  std::string_view keep(std::string_view s) { return *ast_.intern(s); }

  struct Nest {
    Nest(ExpressionParser& p, int& depth_, int max, const char* what) : depth(depth_) {
      if (++depth > max) {
        --depth;
        p.error(fmt::format("{} nest more than {} deep", what, max));
      }
    }
    ~Nest() { --depth; }
    int& depth;
  };

  // ---- expressions, by rising precedence ----

  const Expr* expression(bool with_conditional = true) { return with_conditional ? conditional() : disjunction(); }

  const Expr* conditional() {
    const Nest nest(*this, grammar_depth_, kGrammarDepthMax, "expressions");
    const Expr* e = disjunction();
    while (now().is_name("if")) {
      const int line = take().line;
      const Expr* test = disjunction();
      const Expr* otherwise = skip_name("else") ? conditional() : nullptr;
      e = make(ExprKind::conditional, line, {test, e, otherwise});
    }
    return e;
  }

  const Expr* disjunction() {
    const Expr* e = conjunction();
    if (!now().is_name("or")) return e;
    Expr* chain = make(ExprKind::disjunction, now().line, {e});
    while (skip_name("or")) add_arg(*chain, conjunction());
    return chain;
  }

  const Expr* conjunction() {
    const Expr* e = negation();
    if (!now().is_name("and")) return e;
    Expr* chain = make(ExprKind::conjunction, now().line, {e});
    while (skip_name("and")) add_arg(*chain, negation());
    return chain;
  }

  const Expr* negation() {
    if (!now().is_name("not")) return comparison();
    const Nest nest(*this, grammar_depth_, kGrammarDepthMax, "expressions");
    const int line = take().line;
    return make(ExprKind::negate, line, {negation()});
  }

  const Expr* comparison() {
    const Expr* e = sum();
    Expr* chain = nullptr;
    for (;;) {
      Op op;
      if (now().is_op("==")) op = Op::eq;
      else if (now().is_op("!=")) op = Op::ne;
      else if (now().is_op("<")) op = Op::lt;
      else if (now().is_op("<=")) op = Op::le;
      else if (now().is_op(">")) op = Op::gt;
      else if (now().is_op(">=")) op = Op::ge;
      else if (now().is_name("in")) op = Op::in;
      else if (now().is_name("not") && ahead().is_name("in")) op = Op::not_in;
      else break;
      if (op == Op::not_in) take();
      const int line = take().line;
      if (!chain) chain = make(ExprKind::compare, line, {e});
      chain->ops.push_back(op);
      add_arg(*chain, sum());
    }
    return chain ? chain : e;
  }

  struct OpName {
    std::string_view text;
    Op op;
  };
  template <size_t n>
  const Expr* left_chain(const OpName (&table)[n], const Expr* (ExpressionParser::*operand)()) {
    const Expr* e = (this->*operand)();
    Expr* chain = nullptr;
    for (;;) {
      const auto* row = std::find_if(table, table + n, [&](const OpName& r) { return now().is_op(r.text); });
      if (row == table + n) return chain ? chain : e;
      const int line = take().line;
      if (!chain) chain = make(ExprKind::arithmetic, line, {e});
      chain->ops.push_back(row->op);
      add_arg(*chain, (this->*operand)());
    }
  }

  const Expr* sum() {
    static constexpr OpName kOps[] = {{"+", Op::add}, {"-", Op::sub}};
    return left_chain(kOps, &ExpressionParser::concat);
  }

  const Expr* concat() {
    const Expr* e = product();
    if (!now().is_op("~")) return e;
    Expr* chain = make(ExprKind::concat, now().line, {e});
    while (skip_op("~")) add_arg(*chain, product());
    return chain;
  }

  const Expr* product() {
    static constexpr OpName kOps[] = {{"*", Op::mul}, {"/", Op::div}, {"//", Op::floordiv}, {"%", Op::mod}};
    return left_chain(kOps, &ExpressionParser::power);
  }

  const Expr* power() {
    static constexpr OpName kOps[] = {{"**", Op::pow}};
    return left_chain(kOps, &ExpressionParser::signed_value);
  }

  const Expr* signed_value() { return unary(true); }

  const Expr* unary(bool with_filter) {
    const Nest nest(*this, grammar_depth_, kGrammarDepthMax, "expressions");
    const Expr* e = nullptr;
    if (now().is_op("-") || now().is_op("+")) {
      const Token& t = take();
      const ExprKind kind = t.text == "-" ? ExprKind::minus : ExprKind::plus;
      const int line = t.line;
      e = make(kind, line, {unary(false)});
    } else {
      e = primary();
    }
    e = postfix(e);
    return with_filter ? filters_and_tests(e) : e;
  }

  const Expr* primary() {
    const Token& t = now();
    const int line = t.line;
    if (t.kind == TokenKind::name) {
      const std::string_view s = take().text;
      if (s == "true" || s == "True") return constant(Value::of(true), line);
      if (s == "false" || s == "False") return constant(Value::of(false), line);
      if (s == "none" || s == "None") return constant(Value::none(), line);
      return name(s, line);
    }
    if (t.kind == TokenKind::string) {
      std::string s;
      while (now().kind == TokenKind::string) s += take().text;
      return constant(Value::of(keep(s)), line);
    }
    if (t.kind == TokenKind::integer) return constant(Value::of(take().integer), line);
    if (t.kind == TokenKind::floating) return constant(Value::of(take().floating), line);
    if (skip_op("(")) {
      const Expr* e = tuple(true, {}, true);
      expect_op(")");
      return e;
    }
    if (skip_op("[")) {
      Expr* e = make(ExprKind::list, line);
      while (!now().is_op("]")) {
        if (!e->args.empty()) {
          expect_op(",");
          if (now().is_op("]")) break;
        }
        add_arg(*e, expression());
      }
      expect_op("]");
      return e;
    }
    if (skip_op("{")) {
      Expr* e = make(ExprKind::dict, line);
      while (!now().is_op("}")) {
        if (!e->args.empty()) {
          expect_op(",");
          if (now().is_op("}")) break;
        }
        add_arg(*e, expression());
        expect_op(":");
        add_arg(*e, expression());
      }
      expect_op("}");
      return e;
    }
    error(fmt::format("unexpected {}", describe(t)));
  }

  bool tuple_ends(Names ends) const {
    if (now().kind == TokenKind::variable_end || now().kind == TokenKind::block_end || now().is_op(")")) return true;
    return std::any_of(ends.begin(), ends.end(), [&](std::string_view s) { return now().is_name(s); });
  }

  // One expression, or a tuple where commas follow.
  const Expr* tuple(bool with_conditional, Names ends, bool in_parentheses) {
    const int line = now().line;
    std::vector<const Expr*> items;
    bool is_tuple = false;
    while (!tuple_ends(ends)) {
      items.push_back(expression(with_conditional));
      if (!now().is_op(",")) break;
      take();
      is_tuple = true;
    }
    if (!is_tuple) {
      if (!items.empty()) return items[0];
      if (!in_parentheses) error(fmt::format("expected an expression, found {}", describe(now())));
    }
    return make(ExprKind::tuple, line, std::move(items));
  }

  const Expr* postfix(const Expr* e) {
    for (;;) {
      if (now().is_op(".") || now().is_op("[")) e = subscript(e);
      else if (now().is_op("(")) e = call(e);
      else return e;
    }
  }

  const Expr* filters_and_tests(const Expr* e) {
    for (;;) {
      if (now().is_op("|")) e = filter(e, false);
      else if (now().is_name("is")) e = test(e);
      else if (now().is_op("(")) e = call(e);
      else return e;
    }
  }

  const Expr* call(const Expr* callee) {
    Expr* e = make(ExprKind::call, now().line, {callee});
    set_call(*e, call_args());
    return e;
  }

  const Expr* subscript(const Expr* e) {
    const int line = now().line;
    if (skip_op(".")) {
      if (now().kind == TokenKind::integer)
        return make(ExprKind::item, line, {e, constant(Value::of(take().integer), line)});
      Expr* a = make(ExprKind::attribute, line, {e});
      a->symbol = ast_.intern(any_name());
      return a;
    }
    expect_op("[");
    std::vector<const Expr*> parts;
    bool is_slice = false;
    if (!now().is_op(":")) parts.push_back(expression());
    if (now().is_op(":")) {
      is_slice = true;
      if (parts.empty()) parts.push_back(nullptr);
      while (parts.size() < 4 && skip_op(":"))
        parts.push_back(now().is_op(":") || now().is_op("]") ? nullptr : expression());
      parts.resize(3, nullptr);
    } else if (now().is_op(",")) {
      Expr* key = make(ExprKind::tuple, line, parts);
      while (skip_op(",")) {
        if (now().is_op(":")) error("slices inside a tuple of subscripts are not supported");
        add_arg(*key, expression());
      }
      parts = {key};
    }
    expect_op("]");
    parts.insert(parts.begin(), e);
    return make(is_slice ? ExprKind::slice : ExprKind::item, line, std::move(parts));
  }

  CallArgs call_args() {
    CallArgs c;
    const int line = now().line;
    expect_op("(");
    const auto ensure = [&](bool ok) {
      if (!ok) error("the arguments of a call are out of order", line);
    };
    for (bool first = true; !now().is_op(")"); first = false) {
      if (!first) {
        expect_op(",");
        if (now().is_op(")")) break;
      }
      if (skip_op("*")) {
        ensure(!c.star && !c.star_star);
        c.star = expression();
      } else if (skip_op("**")) {
        ensure(!c.star_star);
        c.star_star = expression();
      } else if (now().kind == TokenKind::name && ahead().is_op("=")) {
        ensure(!c.star_star);
        const Symbol key = ast_.intern(take().text);
        take();
        for (const auto& [other, value] : c.named)
          if (other == key) error(fmt::format("keyword argument {} is repeated", *key), line);
        c.named.emplace_back(key, expression());
      } else {
        ensure(!c.star && !c.star_star && c.named.empty());
        c.positional.push_back(expression());
      }
    }
    expect_op(")");
    return c;
  }

  std::string dotted_name() {
    std::string s(any_name());
    while (skip_op(".")) s += '.', s += any_name();
    return s;
  }

  // A chain of filters on `e`; `inline_first`: the first "|" is left out (filter blocks).
  const Expr* filter(const Expr* e, bool inline_first) {
    while (inline_first || now().is_op("|")) {
      if (!inline_first) take();
      inline_first = false;
      Expr* f = make(ExprKind::filter, now().line, {e});
      f->symbol = ast_.intern(dotted_name());
      if (now().is_op("(")) set_call(*f, call_args());
      e = f;
    }
    return e;
  }

  const Expr* test(const Expr* e) {
    const int line = take().line;
    const bool negated = skip_name("not");
    Expr* t = make(ExprKind::test, line, {e});
    t->symbol = ast_.intern(dotted_name());
    const Token& n = now();
    const bool starts_value = n.kind == TokenKind::name || n.kind == TokenKind::string ||
                              n.kind == TokenKind::integer || n.kind == TokenKind::floating || n.is_op("[") ||
                              n.is_op("{");
    if (n.is_op("(")) {
      set_call(*t, call_args());
    } else if (starts_value && !n.is_name("else") && !n.is_name("or") && !n.is_name("and")) {
      if (n.is_name("is")) error("tests cannot be chained with is");
      const Nest nest(*this, grammar_depth_, kGrammarDepthMax, "expressions");
      CallArgs c;
      c.positional.push_back(postfix(primary()));
      set_call(*t, std::move(c));
    }
    return negated ? make(ExprKind::negate, line, {t}) : t;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Ast ast_;
  std::vector<MacroDef*> macros_;  // those whose body is being read
  int grammar_depth_ = 0;
};

}  // namespace hearth::text::jinja
