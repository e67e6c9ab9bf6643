// Evaluates a template's tree. One interpreter serves one render, on one thread.
#pragma once
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/template/ast.h"
#include "text/template/template.h"
#include "text/template/value.h"
#include "text/template/written.h"

namespace hearth::text::jinja {

struct Scope {
  Scope(Arena& arena, Scope* outer_) : outer(outer_), names(&arena) {}
  Scope* outer;
  std::pmr::vector<std::pair<Symbol, Value>> names;

  Value* find(Symbol s) {
    for (auto& [name, value] : names)
      if (name == s) return &value;
    return nullptr;
  }
  void set(Symbol s, const Value& v) {
    if (Value* old = find(s)) *old = v;
    else names.emplace_back(s, v);
  }
};

struct Macro : Object {
  Macro(const MacroDef* d, Scope* s) : Object(ObjectKind::macro), def(d), scope(s) {}
  const MacroDef* def;
  Scope* scope;  // where it was defined
};

struct Loop : Object {
  Loop(Iterator* it, const Value& of, const Stmt* s, Scope* outer_, int depth)
      : Object(ObjectKind::loop), source(it), iterable(of), stmt(s), outer(outer_), depth0(depth) {}
  Iterator* source;
  Value iterable;
  const Stmt* stmt;
  Scope* outer;
  int depth0;
  int64_t index0 = -1;
  Value before, current;
  std::optional<Value> after;  // looked ahead
  std::optional<int64_t> length;
  List* changed = nullptr;  // arguments of the last loop.changed()
};

enum class Flow : uint8_t { normal, loop_break, loop_continue };

class Interpreter {
 public:
  Interpreter(const Ast& ast, const RenderInput& input, const RenderLimits& limits);
  Rendered run();
  int line() const { return line_; }

  // For operators, filters and methods.
  Arena& arena() { return arena_; }
  void spend(int64_t steps) { budget_.spend(steps); }
  const RenderLimits& limits() const { return limits_; }
  const std::optional<std::tm>& now() const { return now_; }
  size_t bytes_max() const { return static_cast<size_t>(limits_.output_bytes); }
  // Copies into the arena; Fault above the output limit. Plain bytes are nobody's: not the template's.
  Value string(std::string_view made);
  Value string(const Text& made);
  Value string_made_of(std::string_view from, std::string_view made);  // as Text::add_made
  Text text() { return Text(written_); }
  List* new_list() { return arena_.make<List>(arena_); }
  Dict* new_dict() { return arena_.make<Dict>(arena_); }
  Value from_json(const json::Value& v);

  Value call(const Value& callee, const Args& args);
  Value apply_filter(std::string_view name, const Value& input, const Args& args);
  bool apply_test(std::string_view name, const Value& input, const Args& args);
  Value attribute(const Value& of, std::string_view name);  // of.name
  Value item(const Value& of, const Value& key);            // of[key]
  Iterator* iterate(const Value& v);                        // Fault: not iterable
  List* to_list(const Value& v);                            // a new list of all items
  bool loop_next(Loop& loop, Value& out);
  int64_t loop_length(Loop& loop);
  std::optional<Value> loop_peek(Loop& loop);

  // Guards recursion of evaluation and of walks over nested values.
  struct Depth {
    Depth(Interpreter& in) : depth(in.depth_) {
      if (++depth > kDepthMax) {
        --depth;
        throw Fault("evaluation nests too deep");
      }
    }
    ~Depth() { --depth; }
    int& depth;
    static constexpr int kDepthMax = 700;
  };

  Value eval(const Expr& e);

 private:
  struct Output {
    Text text;
    bool is_root = false;
  };

  Value eval_call(const Expr& e);
  Value eval_filter(const Expr& e, const Value& input);
  Args eval_args(const CallArgs& call);
  Value lookup(Symbol s);
  Flow exec(const Block& block);
  Flow exec(const Stmt& stmt);
  Flow exec_for(const Stmt& stmt);
  Flow exec_loop(const Stmt& stmt, const Value& iterable, int depth0);
  Flow exec_with(const Stmt& stmt);
  void exec_call_block(const Stmt& stmt);
  Flow exec_generation(const Stmt& stmt);
  Value call_macro(const Macro& macro, const Args& args);
  void assign(const Target& target, const Value& v);
  template <class T>  // std::string_view, Text
  void write(const T& s);
  // Runs a block in a scope of its own with its output collected.
  Flow capture(const Block& block, Scope* outer, Value& out);
  friend struct FilteredItems;

  const Ast& ast_;
  const RenderInput& input_;
  RenderLimits limits_;
  Budget budget_;
  Arena arena_;
  Written written_;
  std::optional<std::tm> now_;
  Scope* scope_ = nullptr;
  Output* out_ = nullptr;
  Rendered rendered_;
  int line_ = 1;
  int depth_ = 0;
  int calls_ = 0;
};

// Tables of the language; null when the name is unknown.
using FilterFn = Value (*)(Interpreter& in, const Value& input, const Args& args);
using TestFn = bool (*)(Interpreter& in, const Value& input, const Args& args);
FilterFn find_filter(std::string_view name);
TestFn find_test(std::string_view name);
MethodFn find_method(const Value& self, std::string_view name);
const Function* find_function(std::string_view name);  // globals: range, dict, namespace, ...

// Arguments by name. Fault when one is unknown, given twice, or too many are given; absent ones are empty.
template <size_t n>
struct Bound {
  std::optional<Value> values[n];
  const std::optional<Value>& operator[](size_t i) const { return values[i]; }
  Value value(size_t i, const Value& otherwise) const { return values[i].value_or(otherwise); }
};
void bind_into(std::string_view function, const Args& args, const std::string_view* names, size_t n, size_t required,
               std::optional<Value>* out);
template <size_t n>
Bound<n> bind(std::string_view function, const Args& args, const std::string_view (&names)[n], size_t required = 0) {
  Bound<n> b;
  bind_into(function, args, names, n, required, b.values);
  return b;
}

}  // namespace hearth::text::jinja
