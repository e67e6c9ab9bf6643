// The syntax tree of a template. Nodes and names are owned by the Ast; a node's depth is bounded when it is made, so
// that evaluation and every walk stay within the stack.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/template/value.h"

namespace hearth::text::jinja {

using Symbol = const std::string*;  // interned: equal names have equal pointers

enum class ExprKind : uint8_t {
  constant,  // value
  name,      // symbol
  list,
  tuple,      // args
  dict,       // args: key, value, key, value, ...
  attribute,  // args[0].symbol
  item,       // args[0][args[1]]
  slice,      // args[0][args[1] : args[2] : args[3]], null where left out
  call,       // args[0](call)
  filter,     // args[0] | symbol(call); args[0] null inside filter blocks
  test,       // args[0] is symbol(call)
  negate,     // not args[0]
  minus,
  plus,         // sign
  arithmetic,   // args[0] ops[0] args[1] ops[1] ..., from left to right
  concat,       // args joined with ~
  compare,      // chain: args[0] ops[0] args[1] ops[1] ...
  conjunction,  // args joined with and
  disjunction,  // args joined with or
  conditional,  // args[1] if args[0] else args[2]; args[2] null without else
};

enum class Op : uint8_t { add, sub, mul, div, floordiv, mod, pow, eq, ne, lt, le, gt, ge, in, not_in };

struct Expr;

struct CallArgs {
  std::vector<const Expr*> positional;
  std::vector<std::pair<Symbol, const Expr*>> named;
  const Expr* star = nullptr;       // *expr
  const Expr* star_star = nullptr;  // **expr
};

struct Expr {
  ExprKind kind = ExprKind::constant;
  int line = 1;
  int depth = 1;
  Symbol symbol = nullptr;
  Value value;
  std::vector<const Expr*> args;
  std::vector<Op> ops;
  CallArgs call;
};

// What can stand left of "=" or behind "for": a name, ns.attribute, or a tuple of targets.
struct Target {
  Symbol name = nullptr;
  Symbol attribute = nullptr;  // name.attribute
  std::vector<Target> parts;   // tuple when not empty
};

enum class StmtKind : uint8_t {
  text,          // text
  output,        // expr
  if_else,       // branches, otherwise
  for_loop,      // target in expr, filter, body, otherwise, recursive
  set,           // target = expr
  set_block,     // target, expr (filter chain with null source, or null), body
  with,          // bindings, body
  macro,         // macro
  call_block,    // expr (a call), macro (the caller)
  filter_block,  // expr (filter chain), body
  generation,    // body
  loop_break,
  loop_continue,
};

struct Stmt;
using Block = std::vector<const Stmt*>;

struct MacroDef {
  std::string_view name;
  std::vector<Symbol> parameters;
  std::vector<const Expr*> defaults;  // of the last parameters
  Block body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Branch {
  const Expr* test = nullptr;
  Block body;
};

struct Stmt {
  StmtKind kind = StmtKind::text;
  int line = 1;
  std::string_view text;
  const Expr* expr = nullptr;
  const Expr* filter = nullptr;
  Target target;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, const Expr*>> bindings;
  Block body, otherwise;
  MacroDef macro;
  bool recursive = false;
};

struct Ast {
  Block body;
  std::unordered_set<std::string> names;  // node based: pointers stay
  std::vector<std::string_view> words;    // the same, ascending by address
  std::vector<std::unique_ptr<Expr>> exprs;
  std::vector<std::unique_ptr<Stmt>> stmts;

  Symbol intern(std::string_view s) { return &*names.emplace(s).first; }
};

// Throws SyntaxFault. Bounds: expressions nest 100 deep, blocks 60 deep.
Ast parse(std::string_view source);

}  // namespace hearth::text::jinja
