#include "text/template/iterators.h"

#include <fmt/format.h>

#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {

constexpr int kChainMax = 64;

void check_chain(const Iterator& it) {
  if (it.chain > kChainMax) throw Fault(fmt::format("more than {} lazy filters feed on each other", kChainMax));
}

bool ListItems::next(Interpreter& in, Value& out) {
  in.spend(1);
  if (at >= list->items.size()) return false;
  out = list->items[at++];
  return true;
}

bool Characters::next(Interpreter& in, Value& out) {
  in.spend(1);
  if (at >= text.size()) return false;
  const size_t begin = at;
  next_point(text, at);
  out = Value::of(text.substr(begin, at - begin));
  return true;
}

bool RangeItems::next(Interpreter& in, Value& out) {
  in.spend(1);
  if (at >= range->size) return false;
  out = Value::of(range->at(at++));
  return true;
}

bool DictItems::next(Interpreter& in, Value& out) {
  in.spend(1);
  if (at >= dict->entries.size()) return false;
  const auto& [key, value] = dict->entries[at++];
  if (what == DictView::What::items) {
    List* pair = in.new_list();
    pair->items.reserve(2);
    pair->items.push_back(key);
    pair->items.push_back(value);
    out = Value::tuple(pair);
  } else {
    out = what == DictView::What::keys ? key : value;
  }
  return true;
}

bool FilteredItems::next(Interpreter& in, Value& out) {
  const Interpreter::Depth depth(in);
  for (Value v; source->next(in, v);) {
    Scope* const outer = std::exchange(in.scope_, in.arena_.make<Scope>(in.arena_, scope));
    in.assign(stmt.target, v);
    const bool keep = truth(in.eval(*stmt.filter));
    in.scope_ = outer;
    if (!keep) continue;
    out = v;
    return true;
  }
  return false;
}

Iterator* Interpreter::iterate(const Value& v) {
  switch (v.type) {
    case Type::list:
    case Type::tuple: return arena_.make<ListItems>(v.list);
    case Type::string: return arena_.make<Characters>(v.str());
    case Type::dict: return arena_.make<DictItems>(v.dict, DictView::What::keys);
    case Type::undefined: return arena_.make<Characters>(std::string_view());
    case Type::object: break;
    default: throw Fault(fmt::format("'{}' is not iterable", type_name(v)));
  }
  switch (v.object->kind) {
    case ObjectKind::range: return arena_.make<RangeItems>(static_cast<const Range*>(v.object));
    case ObjectKind::view: {
      const auto& view = *static_cast<const DictView*>(v.object);
      return arena_.make<DictItems>(view.dict, view.what);
    }
    case ObjectKind::iterator: return static_cast<Iterator*>(v.object);
    default: throw Fault(fmt::format("'{}' is not iterable", type_name(v)));
  }
}

List* Interpreter::to_list(const Value& v) {
  List* list = new_list();
  if (v.is_sequence()) {
    spend(static_cast<int64_t>(v.list->items.size() / 8));
    list->items.assign(v.list->items.begin(), v.list->items.end());
    return list;
  }
  Iterator* it = iterate(v);
  for (Value x; it->next(*this, x);) list->items.push_back(x);
  return list;
}

// ---- loops ----

std::optional<Value> Interpreter::loop_peek(Loop& loop) {
  if (!loop.after) {
    Value v;
    if (!loop.source->next(*this, v)) return std::nullopt;
    loop.after = v;
  }
  return loop.after;
}

bool Interpreter::loop_next(Loop& loop, Value& out) {
  if (loop.after) {
    out = *loop.after;
    loop.after.reset();
  } else if (!loop.source->next(*this, out)) {
    return false;
  }
  ++loop.index0;
  loop.before = loop.current;
  loop.current = out;
  return true;
}

int64_t Interpreter::loop_length(Loop& loop) {
  if (loop.length) return *loop.length;
  const bool is_stream = loop.iterable.is(Type::object) && loop.iterable.object->kind == ObjectKind::iterator;
  if (const auto n = is_stream ? std::nullopt : length_of(*this, loop.iterable)) return *(loop.length = n);
  List* rest = new_list();
  for (Value v; loop.source->next(*this, v);) rest->items.push_back(v);
  loop.source = arena_.make<ListItems>(rest);
  loop.length = static_cast<int64_t>(rest->items.size()) + loop.index0 + 1 + (loop.after ? 1 : 0);
  return *loop.length;
}

Flow Interpreter::exec_loop(const Stmt& stmt, const Value& iterable, int depth0) {
  static const std::string kLoop = "loop";
  const auto name = ast_.names.find(kLoop);
  Scope* const outer = scope_;
  Iterator* source = iterate(iterable);
  Value over = iterable;
  if (stmt.filter) {
    source = arena_.make<FilteredItems>(source, stmt, outer);
    check_chain(*source);
    over = Value::of(static_cast<Object*>(source));
  }
  Loop* loop = arena_.make<Loop>(source, over, &stmt, outer, depth0);
  Scope* inner = arena_.make<Scope>(arena_, outer);
  Flow flow = Flow::normal;
  bool completed = false;  // Jinja's else runs when no pass came to the end of the body, left by break or not
  for (Value v; loop_next(*loop, v);) {
    inner->names.clear();
    scope_ = inner;
    if (name != ast_.names.end()) inner->set(&*name, Value::of(static_cast<Object*>(loop)));
    assign(stmt.target, v);
    flow = exec(stmt.body);
    if (flow == Flow::loop_break) break;
    completed |= flow == Flow::normal;
  }
  scope_ = outer;
  if (completed) return Flow::normal;
  Scope* other = arena_.make<Scope>(arena_, outer);
  scope_ = other;
  flow = exec(stmt.otherwise);
  scope_ = outer;
  return flow;
}

}  // namespace hearth::text::jinja
