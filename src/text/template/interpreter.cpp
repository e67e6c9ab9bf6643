#include "text/template/interpreter.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "text/template/formatting.h"
#include "text/template/iterators.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {

Interpreter::Interpreter(const Ast& ast, const RenderInput& input, const RenderLimits& limits)
    : ast_(ast),
      input_(input),
      limits_(limits),
      budget_(limits.steps, limits.wall_ms, limits.now_ms),
      arena_(budget_),
      written_(ast.words, budget_),
      now_(input.now) {
  for (const std::string_view words : input.trusted) written_.add(words);
}

Rendered Interpreter::run() {
  Scope* context = arena_.make<Scope>(arena_, nullptr);
  for (const auto& [name, value] : input_.variables) {
    const auto it = ast_.names.find(name);
    if (it != ast_.names.end()) context->set(&*it, from_json(*value));  // a name that the template never says is unseen
  }
  scope_ = arena_.make<Scope>(arena_, context);
  Output root{.text = text(), .is_root = true};
  out_ = &root;
  exec(ast_.body);
  rendered_.text = root.text.bytes();
  size_t begin = 0;
  const auto quote_until = [&](size_t end) {
    if (begin < end) rendered_.quoted.push_back({begin, end});
  };
  for (const ByteRange& own : root.text.written()) {
    quote_until(own.begin);
    begin = own.end;
  }
  quote_until(rendered_.text.size());
  return std::move(rendered_);
}

Value Interpreter::string(std::string_view made) {
  if (made.size() > bytes_max()) throw Fault(fmt::format("a string is beyond {} bytes", bytes_max()), kOutputLimit);
  return Value::of(arena_.copy(made));
}

Value Interpreter::string(const Text& made) {
  const Value v = string(made.bytes());
  spend(static_cast<int64_t>(made.written().size()));
  for (const ByteRange& own : made.written()) written_.add(v.str().substr(own.begin, own.end - own.begin));
  return v;
}

Value Interpreter::string_made_of(std::string_view from, std::string_view made) {
  Text whole = text();
  whole.add_made(made, from);
  return string(whole);
}

Value Interpreter::from_json(const json::Value& v) {
  const Depth depth(*this);
  if (const std::string* s = v.string()) {
    if (!is_utf8(*s)) throw Fault("a string of the input is not UTF-8");
    return Value::of(std::string_view(*s));
  }
  if (const json::Array* a = v.array()) {
    List* list = new_list();
    list->items.reserve(a->size());
    for (const json::Value& x : *a) list->items.push_back(from_json(x));
    return Value::of(list);
  }
  if (const json::Object* o = v.object()) {
    Dict* dict = new_dict();
    dict->entries.reserve(o->size());
    for (const auto& [key, value] : *o) {
      if (!is_utf8(key)) throw Fault("a key of the input is not UTF-8");
      dict->entries.emplace_back(Value::of(std::string_view(key)), from_json(value));
    }
    return Value::of(dict);
  }
  if (v.is_bool()) return Value::of(v.as_bool("input"));
  if (v.is_int()) return Value::of(v.as_int("input"));
  if (v.is_double()) return Value::of(v.as_double("input"));
  return Value::none();
}

template <class T>
void Interpreter::write(const T& s) {
  budget_.spend(1 + static_cast<int64_t>(s.size() / 256));
  if (out_->text.size() + s.size() > bytes_max())
    throw Fault(fmt::format("the output is beyond {} bytes", bytes_max()), kOutputLimit);
  out_->text += s;
}

Value Interpreter::lookup(Symbol s) {
  for (Scope* scope = scope_; scope; scope = scope->outer)
    if (const Value* v = scope->find(s)) return *v;
  if (const Function* f = find_function(*s)) return Value::of(const_cast<Function*>(f));
  return Value::undefined(*s, Absence::name);
}

Value Interpreter::attribute(const Value& of, std::string_view name) {
  if (of.is_undefined()) undefined_used(of);
  if (name.starts_with("__")) throw Fault(fmt::format("access to attribute '{}' is refused", name));
  if (const MethodFn method = find_method(of, name)) return Value::of(arena_.make<Method>(of, method));
  if (of.is(Type::dict)) {
    if (const Value* v = find_key(*this, *of.dict, name)) return *v;
  } else if (of.is(Type::tuple) && of.list->is_group && (name == "grouper" || name == "list")) {
    return of.list->items[name == "list" ? 1 : 0];
  } else if (of.is(Type::object)) {
    switch (of.object->kind) {
      case ObjectKind::name_space:
        if (const Value* v = find_key(*this, *static_cast<Namespace*>(of.object)->attributes, name)) return *v;
        break;
      case ObjectKind::loop: {
        Loop& loop = *static_cast<Loop*>(of.object);
        if (name == "index") return Value::of(loop.index0 + 1);
        if (name == "index0") return Value::of(loop.index0);
        if (name == "first") return Value::of(loop.index0 == 0);
        if (name == "last") return Value::of(!loop_peek(loop).has_value());
        if (name == "length") return Value::of(loop_length(loop));
        if (name == "revindex") return Value::of(loop_length(loop) - loop.index0);
        if (name == "revindex0") return Value::of(loop_length(loop) - loop.index0 - 1);
        if (name == "depth") return Value::of(static_cast<int64_t>(loop.depth0) + 1);
        if (name == "depth0") return Value::of(static_cast<int64_t>(loop.depth0));
        if (name == "previtem") return loop.index0 == 0 ? Value::undefined("there is no previous item") : loop.before;
        if (name == "nextitem") return loop_peek(loop).value_or(Value::undefined("there is no next item"));
        break;
      }
      case ObjectKind::cycler: {
        const Cycler& c = *static_cast<Cycler*>(of.object);
        if (name == "current") return c.items->items[c.position];
        break;
      }
      case ObjectKind::macro:
        if (name == "name") return Value::of(static_cast<Macro*>(of.object)->def->name);
        break;
      default: break;
    }
  }
  return Value::undefined(name, Absence::attribute);
}

Value Interpreter::item(const Value& of, const Value& key) {
  if (of.is_undefined()) undefined_used(of);
  spend(1);
  if (of.is(Type::dict)) {
    if (hashable(key))
      if (const Value* v = find_key(*this, *of.dict, key)) return *v;
  } else if (key.is_int()) {
    int64_t i = key.as_int();
    if (of.is_sequence()) {
      const auto n = static_cast<int64_t>(of.list->items.size());
      if (i < 0) i += n;
      if (i >= 0 && i < n) return of.list->items[static_cast<size_t>(i)];
    } else if (of.is_string()) {
      const int64_t n = *length_of(*this, of);
      if (i < 0) i += n;
      if (i >= 0 && i < n) {
        const size_t begin = byte_of_point(of.str(), static_cast<size_t>(i));
        size_t end = begin;
        next_point(of.str(), end);
        return Value::of(of.str().substr(begin, end - begin));
      }
    } else if (of.is(Type::object) && of.object->kind == ObjectKind::range) {
      const Range& r = *static_cast<Range*>(of.object);
      if (i < 0) i += r.size;
      if (i >= 0 && i < r.size) return Value::of(r.at(i));
    }
    return Value::undefined(string(to_str(*this, key)).str(), Absence::attribute);
  }
  if (key.is_string()) return attribute(of, key.str());
  Text repr = text();
  append_repr(*this, repr, key);
  return Value::undefined(string(repr).str(), Absence::attribute);
}

Args Interpreter::eval_args(const CallArgs& call) {
  Args args;
  args.positional.reserve(call.positional.size());
  for (const Expr* e : call.positional) args.positional.push_back(eval(*e));
  if (call.star) {
    Iterator* it = iterate(eval(*call.star));
    for (Value v; it->next(*this, v);) {
      if (args.positional.size() >= 10'000) throw Fault("a call has more than 10000 arguments");
      args.positional.push_back(v);
    }
  }
  for (const auto& [name, e] : call.named) args.named.emplace_back(*name, eval(*e));
  if (call.star_star) {
    const Value more = eval(*call.star_star);
    if (!more.is(Type::dict)) throw Fault(fmt::format("** needs a mapping, not '{}'", type_name(more)));
    if (more.dict->entries.size() > 1000) throw Fault("a call has more than 1000 named arguments");
    for (const auto& [key, v] : more.dict->entries) {
      if (!key.is_string()) throw Fault("the keys behind ** must be strings");
      for (const auto& [other, value] : args.named)
        if (other == key.str()) throw Fault(fmt::format("keyword argument {} is repeated", other));
      args.named.emplace_back(key.str(), v);
    }
  }
  spend(static_cast<int64_t>(args.positional.size() + args.named.size()));
  return args;
}

Value Interpreter::call(const Value& callee, const Args& args) {
  spend(1);
  if (callee.is_undefined()) undefined_used(callee);
  if (callee.is(Type::object)) {
    switch (callee.object->kind) {
      case ObjectKind::macro: return call_macro(*static_cast<const Macro*>(callee.object), args);
      case ObjectKind::function: return static_cast<const Function*>(callee.object)->fn(*this, args);
      case ObjectKind::method: {
        const auto& m = *static_cast<const Method*>(callee.object);
        return m.fn(*this, m.self, args);
      }
      case ObjectKind::joiner: {
        auto& j = *static_cast<Joiner*>(callee.object);
        if (!args.positional.empty() || !args.named.empty()) throw Fault("a joiner takes no arguments");
        if (!j.used) return j.used = true, Value::of(std::string_view(""));
        return j.separator;
      }
      case ObjectKind::loop: {
        auto& loop = *static_cast<Loop*>(callee.object);
        if (!loop.stmt->recursive) throw Fault("a loop must be marked 'recursive' to be called");
        if (args.positional.size() != 1 || !args.named.empty()) throw Fault("a recursive loop takes one argument");
        if (calls_ >= limits_.recursion)
          throw Fault(fmt::format("calls nest more than {} deep", limits_.recursion), kRecursionLimit);
        ++calls_;
        Output buffer{.text = text()};
        Output* const out = std::exchange(out_, &buffer);
        Scope* const scope = std::exchange(scope_, loop.outer);
        exec_loop(*loop.stmt, args.positional[0], loop.depth0 + 1);
        out_ = out;
        scope_ = scope;
        --calls_;
        return string(buffer.text);
      }
      default: break;
    }
  }
  throw Fault(fmt::format("'{}' is not callable", type_name(callee)));
}

Value Interpreter::call_macro(const Macro& macro, const Args& args) {
  const MacroDef& def = *macro.def;
  if (calls_ >= limits_.recursion)
    throw Fault(fmt::format("calls nest more than {} deep", limits_.recursion), kRecursionLimit);
  Scope* scope = arena_.make<Scope>(arena_, macro.scope);
  const size_t n = def.parameters.size();
  std::vector<bool> used(args.named.size(), false);
  std::vector<const Expr*> missing(n, nullptr);
  std::vector<bool> absent(n, false);
  for (size_t i = 0; i < n; ++i) {
    if (i < args.positional.size()) {
      scope->set(def.parameters[i], args.positional[i]);
      continue;
    }
    bool found = false;
    for (size_t k = 0; k < args.named.size() && !found; ++k)
      if (args.named[k].first == *def.parameters[i]) {
        scope->set(def.parameters[i], args.named[k].second);
        used[k] = found = true;
      }
    absent[i] = !found;
  }
  bool caller_given = false;
  Dict* rest = def.uses_kwargs ? new_dict() : nullptr;
  const auto named_symbol = [&](std::string_view s) -> Symbol {
    const auto it = ast_.names.find(std::string(s));
    return it == ast_.names.end() ? nullptr : &*it;
  };
  for (size_t k = 0; k < args.named.size(); ++k) {
    const auto& [name, v] = args.named[k];
    if (used[k]) continue;
    if (name == "caller" && def.uses_caller) {
      scope->set(named_symbol("caller"), v);
      caller_given = true;
    } else if (rest) {
      set_key(*this, *rest, Value::of(name), v);
    } else {
      throw Fault(fmt::format("macro '{}' takes no keyword argument '{}'", def.name, name));
    }
  }
  const auto is_parameter = [&](Symbol s) {
    return std::find(def.parameters.begin(), def.parameters.end(), s) != def.parameters.end();
  };
  if (def.uses_caller && !caller_given) {
    const Symbol s = named_symbol("caller");
    if (!is_parameter(s)) scope->set(s, Value::undefined("the macro was called without a caller"));
  }
  if (rest) scope->set(named_symbol("kwargs"), Value::of(rest));
  if (def.uses_varargs) {
    List* more = new_list();
    for (size_t i = n; i < args.positional.size(); ++i) more->items.push_back(args.positional[i]);
    scope->set(named_symbol("varargs"), Value::tuple(more));
  } else if (args.positional.size() > n) {
    throw Fault(fmt::format("macro '{}' takes {} arguments, {} given", def.name, n, args.positional.size()));
  }

  ++calls_;
  Output buffer{.text = text()};
  Output* const out = std::exchange(out_, &buffer);
  Scope* const outer = std::exchange(scope_, scope);
  const size_t first_default = n - def.defaults.size();
  for (size_t i = 0; i < n; ++i) {
    if (!absent[i]) continue;
    scope->set(def.parameters[i], i >= first_default ? eval(*def.defaults[i - first_default])
                                                     : Value::undefined(*def.parameters[i], Absence::name));
  }
  exec(def.body);
  scope_ = outer;
  out_ = out;
  --calls_;
  return string(buffer.text);
}

void Interpreter::assign(const Target& target, const Value& v) {
  if (!target.parts.empty()) {
    Iterator* it = iterate(v);
    std::vector<Value> items;
    for (Value x; items.size() <= target.parts.size() && it->next(*this, x);) items.push_back(x);
    if (items.size() != target.parts.size())
      throw Fault(fmt::format("{} values are needed to unpack, {} found", target.parts.size(),
                              items.size() > target.parts.size() ? "more" : std::to_string(items.size())));
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (!target.attribute) return scope_->set(target.name, v);
  const Value of = lookup(target.name);
  if (!of.is(Type::object) || of.object->kind != ObjectKind::name_space)
    throw Fault(fmt::format("'{}' is no namespace: its attribute '{}' cannot be set", *target.name, *target.attribute));
  if (target.attribute->starts_with("_"))
    throw Fault(fmt::format("the attribute '{}' of a namespace is refused", *target.attribute));
  set_key(*this, *static_cast<Namespace*>(of.object)->attributes, Value::of(std::string_view(*target.attribute)), v);
}

Flow Interpreter::capture(const Block& block, Scope* outer, Value& out) {
  Output buffer{.text = text()};
  Output* const saved_out = std::exchange(out_, &buffer);
  Scope* const saved_scope = std::exchange(scope_, arena_.make<Scope>(arena_, outer));
  const Flow flow = exec(block);
  out_ = saved_out;
  scope_ = saved_scope;
  out = string(buffer.text);
  return flow;
}

Flow Interpreter::exec(const Block& block) {
  for (const Stmt* s : block)
    if (const Flow flow = exec(*s); flow != Flow::normal) return flow;
  return Flow::normal;
}

Flow Interpreter::exec(const Stmt& stmt) {
  const Depth depth(*this);
  spend(1);
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::text: write(stmt.text); return Flow::normal;
    case StmtKind::output: {
      const Value v = eval(*stmt.expr);
      if (v.is_string()) write(v.str());
      else if (!v.is_undefined()) write(to_str(*this, v));
      return Flow::normal;
    }
    case StmtKind::if_else:
      for (const Branch& b : stmt.branches)
        if (truth(eval(*b.test))) return exec(b.body);
      return exec(stmt.otherwise);
    case StmtKind::for_loop: return exec_for(stmt);
    case StmtKind::set: assign(stmt.target, eval(*stmt.expr)); return Flow::normal;
    case StmtKind::set_block: {
      Value v;
      if (const Flow flow = capture(stmt.body, scope_, v); flow != Flow::normal) return flow;
      assign(stmt.target, stmt.expr ? eval_filter(*stmt.expr, v) : v);
      return Flow::normal;
    }
    case StmtKind::filter_block: {
      Value v;
      if (const Flow flow = capture(stmt.body, scope_, v); flow != Flow::normal) return flow;
      write(str_view(*this, eval_filter(*stmt.expr, v)));
      return Flow::normal;
    }
    case StmtKind::with: return exec_with(stmt);
    case StmtKind::macro: assign(stmt.target, Value::of(arena_.make<Macro>(&stmt.macro, scope_))); return Flow::normal;
    case StmtKind::call_block: exec_call_block(stmt); return Flow::normal;
    case StmtKind::generation: return exec_generation(stmt);
    case StmtKind::loop_break: return Flow::loop_break;
    case StmtKind::loop_continue: return Flow::loop_continue;
  }
  return Flow::normal;
}

Flow Interpreter::exec_with(const Stmt& stmt) {
  Scope* const outer = scope_;
  Scope* inner = arena_.make<Scope>(arena_, outer);
  for (const auto& [target, e] : stmt.bindings) {
    const Value v = eval(*e);
    scope_ = inner;
    assign(target, v);
    scope_ = outer;
  }
  scope_ = inner;
  const Flow flow = exec(stmt.body);
  scope_ = outer;
  return flow;
}

void Interpreter::exec_call_block(const Stmt& stmt) {
  const Expr& e = *stmt.expr;
  const Value callee = eval(*e.args[0]);
  Args args = eval_args(e.call);
  args.named.emplace_back("caller", Value::of(arena_.make<Macro>(&stmt.macro, scope_)));
  write(str_view(*this, call(callee, args)));
}

Flow Interpreter::exec_generation(const Stmt& stmt) {
  Scope* const outer = std::exchange(scope_, arena_.make<Scope>(arena_, scope_));
  const size_t begin = out_->text.size();
  const Flow flow = exec(stmt.body);
  if (out_->is_root) rendered_.generation.push_back({begin, out_->text.size()});
  scope_ = outer;
  return flow;
}

Flow Interpreter::exec_for(const Stmt& stmt) { return exec_loop(stmt, eval(*stmt.expr), 0); }

Value Interpreter::apply_filter(std::string_view name, const Value& input, const Args& args) {
  spend(1);
  const FilterFn fn = find_filter(name);
  if (!fn) throw Fault(fmt::format("there is no filter named '{}'", name));
  return fn(*this, input, args);
}

bool Interpreter::apply_test(std::string_view name, const Value& input, const Args& args) {
  spend(1);
  const TestFn fn = find_test(name);
  if (!fn) throw Fault(fmt::format("there is no test named '{}'", name));
  return fn(*this, input, args);
}

Value Interpreter::eval_filter(const Expr& e, const Value& input) {
  const Depth depth(*this);
  const Value source =
      e.args[0] ? (e.args[0]->kind == ExprKind::filter ? eval_filter(*e.args[0], input) : eval(*e.args[0])) : input;
  return apply_filter(*e.symbol, source, eval_args(e.call));
}

Value Interpreter::eval_call(const Expr& e) {
  const Expr& callee = *e.args[0];
  if (callee.kind == ExprKind::attribute) {  // a method called in place needs no bound object
    const Value self = eval(*callee.args[0]);
    if (const MethodFn method = find_method(self, *callee.symbol)) return method(*this, self, eval_args(e.call));
    return call(attribute(self, *callee.symbol), eval_args(e.call));
  }
  const Value f = eval(callee);
  return call(f, eval_args(e.call));
}

Value Interpreter::eval(const Expr& e) {
  const Depth depth(*this);
  spend(1);
  line_ = e.line;
  const auto part = [&](size_t i) { return e.args[i] ? eval(*e.args[i]) : Value::none(); };
  switch (e.kind) {
    case ExprKind::constant: return e.value;
    case ExprKind::name: return lookup(e.symbol);
    case ExprKind::list:
    case ExprKind::tuple: {
      List* list = new_list();
      list->items.reserve(e.args.size());
      for (const Expr* x : e.args) list->items.push_back(eval(*x));
      return e.kind == ExprKind::list ? Value::of(list) : Value::tuple(list);
    }
    case ExprKind::dict: {
      Dict* dict = new_dict();
      dict->entries.reserve(e.args.size() / 2);
      for (size_t i = 0; i < e.args.size(); i += 2) {
        const Value key = eval(*e.args[i]);
        set_key(*this, *dict, key, eval(*e.args[i + 1]));
      }
      return Value::of(dict);
    }
    case ExprKind::attribute: return attribute(eval(*e.args[0]), *e.symbol);
    case ExprKind::item: {
      const Value of = eval(*e.args[0]);
      return item(of, eval(*e.args[1]));
    }
    case ExprKind::slice: {
      const Value of = eval(*e.args[0]);
      const Value begin = part(1), end = part(2);
      return slice(*this, of, begin, end, part(3));
    }
    case ExprKind::call: return eval_call(e);
    case ExprKind::filter: return eval_filter(e, Value());
    case ExprKind::test: {
      const Value v = eval(*e.args[0]);
      return Value::of(apply_test(*e.symbol, v, eval_args(e.call)));
    }
    case ExprKind::negate: return Value::of(!truth(eval(*e.args[0])));
    case ExprKind::minus: return negated(eval(*e.args[0]));
    case ExprKind::plus: {
      const Value v = eval(*e.args[0]);
      if (v.is_number()) return v.is_int() ? Value::of(v.as_int()) : v;
      return negated(v);  // throws
    }
    case ExprKind::arithmetic: {
      Value v = eval(*e.args[0]);
      for (size_t i = 0; i < e.ops.size(); ++i) v = arithmetic(*this, e.ops[i], v, eval(*e.args[i + 1]));
      return v;
    }
    case ExprKind::concat: {
      Text s = text();
      for (const Expr* x : e.args) append_str(*this, s, eval(*x));
      return string(s);
    }
    case ExprKind::compare: {
      Value left = eval(*e.args[0]);
      for (size_t i = 0; i < e.ops.size(); ++i) {
        const Value right = eval(*e.args[i + 1]);
        if (!compare(*this, e.ops[i], left, right)) return Value::of(false);
        left = right;
      }
      return Value::of(true);
    }
    case ExprKind::conjunction:
    case ExprKind::disjunction: {
      Value v;
      for (const Expr* x : e.args) {
        v = eval(*x);
        if (truth(v) == (e.kind == ExprKind::disjunction)) break;
      }
      return v;
    }
    case ExprKind::conditional:
      if (truth(eval(*e.args[0]))) return eval(*e.args[1]);
      return e.args[2] ? eval(*e.args[2])
                       : Value::undefined("an inline if without else is undefined when its test fails");
  }
  return Value();
}

}  // namespace hearth::text::jinja
