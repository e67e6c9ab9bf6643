#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "text/template/ast.h"
#include "text/template/expression_parser.h"

namespace hearth::text::jinja {
namespace {

class Parser : ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(source) {}

  Ast run() {
    ast_.body = block({});
    ast_.words.assign(ast_.names.begin(), ast_.names.end());
    std::sort(ast_.words.begin(), ast_.words.end(),
              [](std::string_view a, std::string_view b) { return std::less<>()(a.data(), b.data()); });
    return std::move(ast_);
  }

 private:
  // ---- statements ----

  Block block(Names ends) {
    const Nest nest(*this, block_depth_, kBlockDepthMax, "blocks");
    Block body;
    for (;;) {
      const Token& t = now();
      switch (t.kind) {
        case TokenKind::data: {
          Stmt* s = make(StmtKind::text, t.line);
          s->text = keep(take().text);
          body.push_back(s);
          break;
        }
        case TokenKind::variable_begin: {
          Stmt* s = make(StmtKind::output, take().line);
          s->expr = tuple(true, {}, false);
          expect(TokenKind::variable_end);
          body.push_back(s);
          break;
        }
        case TokenKind::block_begin: {
          take();
          if (now().kind != TokenKind::name)
            error(fmt::format("expected the name of a tag, found {}", describe(now())));
          if (std::find(ends.begin(), ends.end(), now().text) != ends.end()) return body;
          body.push_back(statement());
          expect(TokenKind::block_end);
          break;
        }
        case TokenKind::end:
          if (ends.size() == 0) return body;
          error(fmt::format("the template ends inside a block; expected {}", fmt::join(ends, " or ")));
        default: error(fmt::format("unexpected {}", describe(t)));
      }
    }
  }

  // The body behind a tag's head. Leaves the end tag's name as the current token.
  Block body_until(Names ends) {
    skip_op(":");
    expect(TokenKind::block_end);
    return block(ends);
  }
  Block body_through(std::string_view end) {
    Block b = body_until({end});
    take();
    return b;
  }

  const Stmt* statement() {
    const Token& t = take();
    const int line = t.line;
    const std::string_view tag = t.text;
    if (tag == "if") return if_statement(line);
    if (tag == "for") return for_statement(line);
    if (tag == "set") return set_statement(line);
    if (tag == "macro") return macro_statement(line);
    if (tag == "call") return call_statement(line);
    if (tag == "with") return with_statement(line);
    if (tag == "filter") {
      Stmt* s = make(StmtKind::filter_block, line);
      s->expr = filter(nullptr, true);
      s->body = body_through("endfilter");
      return s;
    }
    if (tag == "generation") {
      Stmt* s = make(StmtKind::generation, line);
      const int loops = std::exchange(loop_depth_, 0);  // a body of its own: loops outside cannot be left from here
      s->body = body_through("endgeneration");
      loop_depth_ = loops;
      return s;
    }
    if (tag == "break" || tag == "continue") {
      if (loop_depth_ == 0) error(fmt::format("'{}' stands outside of a loop", tag), line);
      return make(tag == "break" ? StmtKind::loop_break : StmtKind::loop_continue, line);
    }
    if (tag == "print") {
      Stmt* s = make(StmtKind::output, line);
      if (now().kind == TokenKind::block_end) return make(StmtKind::text, line);
      Expr* joined = make(ExprKind::concat, line, {expression()});
      while (skip_op(",")) add_arg(*joined, expression());
      s->expr = joined;
      return s;
    }
    if (tag == "import" || tag == "from" || tag == "include" || tag == "extends" || tag == "block" ||
        tag == "autoescape" || tag == "do")
      error(fmt::format("the tag '{}' is not part of chat templates", tag), line);
    error(fmt::format("unknown tag '{}'", tag), line);
  }

  const Stmt* if_statement(int line) {
    Stmt* s = make(StmtKind::if_else, line);
    for (;;) {
      Branch b;
      b.test = tuple(false, {}, false);
      b.body = body_until({"elif", "else", "endif"});
      s->branches.push_back(std::move(b));
      const std::string_view end = take().text;
      if (end == "elif") continue;
      if (end == "else") s->otherwise = body_through("endif");
      return s;
    }
  }

  const Stmt* for_statement(int line) {
    Stmt* s = make(StmtKind::for_loop, line);
    s->target = target(Attributes::refused, true);
    check_loop_target(s->target, true);
    expect_name("in");
    s->expr = tuple(false, {"recursive"}, false);
    if (skip_name("if")) s->filter = expression();
    s->recursive = skip_name("recursive");
    ++loop_depth_;
    ++for_depth_;
    s->body = body_until({"endfor", "else"});
    --loop_depth_;
    if (take().text == "else") s->otherwise = body_through("endfor");
    --for_depth_;
    return s;
  }

  const Stmt* set_statement(int line) {
    Stmt* s = make(StmtKind::set, line);
    s->target = target(Attributes::allowed, false);
    check_loop_target(s->target, for_depth_ > 0);
    if (skip_op("=")) {
      s->expr = tuple(true, {}, false);
      return s;
    }
    s->kind = StmtKind::set_block;
    s->expr = filter(nullptr, false);
    s->body = body_through("endset");
    return s;
  }

  const Stmt* with_statement(int line) {
    Stmt* s = make(StmtKind::with, line);
    while (now().kind != TokenKind::block_end) {
      if (!s->bindings.empty()) expect_op(",");
      Target t = target(Attributes::refused, false);
      expect_op("=");
      s->bindings.emplace_back(std::move(t), expression());
    }
    s->body = body_through("endwith");
    return s;
  }

  void signature(MacroDef& m) {
    expect_op("(");
    while (!now().is_op(")")) {
      if (!m.parameters.empty()) expect_op(",");
      m.parameters.push_back(ast_.intern(assignable_name()));
      if (skip_op("=")) m.defaults.push_back(expression());
      else if (!m.defaults.empty()) error("a parameter without default follows one with a default");
    }
    expect_op(")");
  }

  void macro_body(MacroDef& m, std::string_view end) {
    macros_.push_back(&m);
    const int loops = std::exchange(loop_depth_, 0);
    m.body = body_through(end);
    loop_depth_ = loops;
    macros_.pop_back();
  }

  const Stmt* macro_statement(int line) {
    Stmt* s = make(StmtKind::macro, line);
    s->target.name = ast_.intern(assignable_name());
    s->macro.name = *s->target.name;
    signature(s->macro);
    macro_body(s->macro, "endmacro");
    return s;
  }

  const Stmt* call_statement(int line) {
    Stmt* s = make(StmtKind::call_block, line);
    s->macro.name = "caller";
    if (now().is_op("(")) signature(s->macro);
    s->expr = expression();
    if (s->expr->kind != ExprKind::call) error("expected a call", line);
    macro_body(s->macro, "endcall");
    return s;
  }

  // ---- targets ----

  enum class Attributes { allowed, refused };

  std::string_view assignable_name() {
    const int line = now().line;
    const std::string_view s = any_name();
    for (const std::string_view fixed : {"true", "false", "none", "True", "False", "None"})
      if (s == fixed) error(fmt::format("cannot assign to '{}'", s), line);
    return s;
  }

  Target target(Attributes attributes, bool ends_with_in) {
    const Nest nest(*this, grammar_depth_, kGrammarDepthMax, "targets");
    const auto one = [&]() -> Target {
      Target t;
      if (skip_op("(")) {
        t = target(attributes, false);
        expect_op(")");
        return t;
      }
      t.name = ast_.intern(assignable_name());
      if (attributes == Attributes::allowed && skip_op(".")) t.attribute = ast_.intern(any_name());
      return t;
    };
    Target first = one();
    if (!now().is_op(",")) return first;
    Target all;
    all.parts.push_back(std::move(first));
    while (skip_op(",")) {
      if (now().is_op("=") || now().is_op(")") || (ends_with_in && now().is_name("in"))) break;
      all.parts.push_back(one());
    }
    return all;
  }

  void check_loop_target(const Target& t, bool in_loop) const {
    if (in_loop && t.name && !t.attribute && *t.name == "loop")
      error("the name 'loop' cannot be assigned inside a loop");
    for (const Target& p : t.parts) check_loop_target(p, in_loop);
  }

  int block_depth_ = 0;
  int loop_depth_ = 0;  // loops that break and continue can reach
  int for_depth_ = 0;   // loops around, whatever stands between
};

}  // namespace

Ast parse(std::string_view source) { return Parser(source).run(); }

}  // namespace hearth::text::jinja
