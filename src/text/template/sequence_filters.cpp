#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "text/template/filters.h"
#include "text/template/formatting.h"
#include "text/template/iterators.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {

Value dict_items(Interpreter& in, const Value& dict) {
  return Value::of(static_cast<Object*>(in.arena().make<DictItems>(dict.dict, DictView::What::items)));
}

namespace {

Value stream(Iterator* it) {
  check_chain(*it);
  return Value::of(static_cast<Object*>(it));
}

// What a lazy filter reads from something that cannot be iterated: the fault comes when an item is asked for.
struct FailingItems final : Iterator {
  explicit FailingItems(std::string_view m) : message(m) {}
  bool next(Interpreter&, Value&) override { throw Fault(std::string(message)); }
  std::string_view message;
};

Iterator* lazily(Interpreter& in, const Value& v) {
  if (in.apply_test("iterable", v, {})) return in.iterate(v);
  return in.arena().make<FailingItems>(in.string(fmt::format("'{}' is not iterable", type_name(v))).str());
}

// A path like "function.name" or 0 that leads from an item to a part of it.
struct Path {
  std::vector<Value> parts;
  std::optional<Value> otherwise;
  bool fold_case = false;

  Value get(Interpreter& in, Value v) const {
    for (const Value& p : parts) {
      v = in.item(v, p);
      if (otherwise && v.is_undefined()) v = *otherwise;
    }
    if (fold_case && v.is_string()) v = in.string_made_of(v.str(), to_lower(v.str()));
    return v;
  }
};

Path path_of(const std::optional<Value>& attribute, bool fold_case = false, std::optional<Value> otherwise = {}) {
  Path path{.parts = {}, .otherwise = otherwise, .fold_case = fold_case};
  if (!attribute || attribute->is(Type::none)) return path;
  if (!attribute->is_string()) {
    path.parts.push_back(*attribute);
    return path;
  }
  std::string_view rest = attribute->str();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    int64_t n = 0;
    bool digits = !part.empty() && part.size() < 18;
    for (const char c : part) {
      digits = digits && c >= '0' && c <= '9';
      n = digits ? n * 10 + (c - '0') : 0;
    }
    path.parts.push_back(digits ? Value::of(n) : Value::of(part));
    if (dot == std::string_view::npos) return path;
    rest.remove_prefix(dot + 1);
  }
}

bool flag(const std::optional<Value>& v) { return v && truth(*v); }

// ---- lazy filters ----

// The call of a filter or a test on each item, kept for the iterator's life.
struct Callee {
  Callee(Arena& arena) : positional(&arena), named(&arena) {}
  std::string_view name;
  std::pmr::vector<Value> positional;
  std::pmr::vector<std::pair<std::string_view, Value>> named;

  Args args() const { return {{positional.begin(), positional.end()}, {named.begin(), named.end()}}; }
};

Callee* callee_of(Interpreter& in, const Args& args, size_t at) {
  Callee* c = in.arena().make<Callee>(in.arena());
  if (!args.positional[at].is_string()) throw Fault("the name of a filter or test must be a string");
  c->name = args.positional[at].str();
  c->positional.assign(args.positional.begin() + static_cast<std::ptrdiff_t>(at) + 1, args.positional.end());
  for (const auto& [name, v] : args.named) c->named.emplace_back(in.string(name).str(), v);
  return c;
}

struct ArenaPath {
  ArenaPath(Arena& arena, const Path& p)
      : parts(p.parts.begin(), p.parts.end(), &arena), otherwise(p.otherwise), fold_case(p.fold_case) {}
  std::pmr::vector<Value> parts;
  std::optional<Value> otherwise;
  bool fold_case;
  Value get(Interpreter& in, const Value& v) const {
    return Path{{parts.begin(), parts.end()}, otherwise, fold_case}.get(in, v);
  }
};

struct MapItems final : Iterator {
  MapItems(Iterator* s, Callee* c, ArenaPath* p) : Iterator(s->chain + 1), source(s), callee(c), path(p) {}
  bool next(Interpreter& in, Value& out) override {
    const Interpreter::Depth depth(in);
    Value v;
    if (!source->next(in, v)) return false;
    out = callee ? in.apply_filter(callee->name, v, callee->args()) : path->get(in, v);
    return true;
  }
  Iterator* source;
  Callee* callee;
  ArenaPath* path;
};

struct SelectItems final : Iterator {
  SelectItems(Iterator* s, Callee* c, ArenaPath* p, bool k)
      : Iterator(s->chain + 1), source(s), callee(c), path(p), keep(k) {}
  bool next(Interpreter& in, Value& out) override {
    const Interpreter::Depth depth(in);
    for (Value v; source->next(in, v);) {
      const Value probe = path ? path->get(in, v) : v;
      if ((callee ? in.apply_test(callee->name, probe, callee->args()) : truth(probe)) != keep) continue;
      out = v;
      return true;
    }
    return false;
  }
  Iterator* source;
  Callee* callee;
  ArenaPath* path;
  bool keep;
};

struct UniqueItems final : Iterator {
  UniqueItems(Iterator* s, ArenaPath* p, List* l) : Iterator(s->chain + 1), source(s), path(p), seen(l) {}
  bool next(Interpreter& in, Value& out) override {
    const Interpreter::Depth depth(in);
    for (Value v; source->next(in, v);) {
      const Value key = path->get(in, v);
      if (!hashable(key)) throw Fault(fmt::format("unhashable type: '{}'", type_name(key)));
      if (contains(in, Value::of(seen), key)) continue;
      seen->items.push_back(key);
      out = v;
      return true;
    }
    return false;
  }
  Iterator* source;
  ArenaPath* path;
  List* seen;
};

template <bool with_attribute, bool keep>
Value chosen(Interpreter& in, const Value& v, const Args& args) {
  if (!truth(v)) return stream(in.iterate(Value()));
  size_t at = 0;
  ArenaPath* path = nullptr;
  if (with_attribute) {
    if (args.positional.empty()) throw Fault("selectattr and rejectattr need the name of an attribute");
    path = in.arena().make<ArenaPath>(in.arena(), path_of(args.positional[0]));
    at = 1;
  }
  Callee* callee = args.positional.size() > at ? callee_of(in, args, at) : nullptr;
  return stream(in.arena().make<SelectItems>(lazily(in, v), callee, path, keep));
}

// ---- sorting ----

struct Keyed {
  std::vector<Value> keys;
  Value item;
};

bool keys_less(Interpreter& in, const std::vector<Value>& a, const std::vector<Value>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (!equal(in, a[i], b[i])) return less(in, a[i], b[i]);
  return false;
}

List* sorted(Interpreter& in, const std::vector<Path>& paths, const List* source, bool reverse) {
  std::vector<Keyed> keyed;
  for (const Value& v : source->items) {
    Keyed k{.keys = {}, .item = v};
    for (const Path& p : paths) k.keys.push_back(p.get(in, v));
    keyed.push_back(std::move(k));
  }
  // Python's reverse sort keeps the order of equal items.
  merge_sort(keyed, [&](const Keyed& a, const Keyed& b) {
    return reverse ? keys_less(in, b.keys, a.keys) : keys_less(in, a.keys, b.keys);
  });
  List* out = in.new_list();
  for (const Keyed& k : keyed) out->items.push_back(k.item);
  return out;
}

Value extreme(Interpreter& in, const Value& v, const Args& args, bool want_max) {
  const auto a = bind(want_max ? "max" : "min", args, {"case_sensitive", "attribute"});
  const Path path = path_of(a[1], !flag(a[0]));
  Iterator* it = in.iterate(v);
  Value best;
  if (!it->next(in, best)) return Value::undefined("no item is the least or greatest of an empty sequence");
  Value best_key = path.get(in, best);
  for (Value x; it->next(in, x);) {
    const Value key = path.get(in, x);
    if (want_max ? !less(in, best_key, key) : !less(in, key, best_key)) continue;
    best = x;
    best_key = key;
  }
  return best;
}

}  // namespace

namespace sequence_filters {

Value length(Interpreter& in, const Value& v, const Args& args) {
  if (!args.positional.empty() || !args.named.empty()) throw Fault("length takes no arguments");
  if (const auto n = length_of(in, v)) return Value::of(*n);
  throw Fault(fmt::format("'{}' has no length", type_name(v)));
}

Value list(Interpreter& in, const Value& v, const Args& args) {
  if (!args.positional.empty() || !args.named.empty()) throw Fault("list takes no arguments");
  return Value::of(in.to_list(v));
}

Value first(Interpreter& in, const Value& v, const Args&) {
  Value x;
  return in.iterate(v)->next(in, x) ? x : Value::undefined("an empty sequence has no first item");
}

Value last(Interpreter& in, const Value& v, const Args&) {
  if (v.is(Type::object) && v.object->kind == ObjectKind::iterator) throw Fault("a generator cannot be reversed");
  const List* all = in.to_list(v);
  return all->items.empty() ? Value::undefined("an empty sequence has no last item") : all->items.back();
}

Value items(Interpreter& in, const Value& v, const Args&) {
  if (v.is_undefined()) return stream(in.iterate(v));
  if (!v.is(Type::dict))
    return stream(
        in.arena().make<FailingItems>(in.string(fmt::format("items needs a mapping, not '{}'", type_name(v))).str()));
  return dict_items(in, v);
}

Value join(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("join", args, {"d", "attribute"});
  const std::string_view between = a[0] ? str_view(in, *a[0]) : std::string_view();
  const Path path = path_of(a[1]);
  Text out = in.text();
  Iterator* it = in.iterate(v);
  bool is_first = true;
  for (Value x; it->next(in, x); is_first = false) {
    if (!is_first) out += between;
    append_str(in, out, path.get(in, x));
    if (out.size() > in.bytes_max())
      throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
  }
  return in.string(out);
}

Value map(Interpreter& in, const Value& v, const Args& args) {
  if (!truth(v)) return stream(in.iterate(Value()));
  Iterator* source = lazily(in, v);
  if (!args.positional.empty()) return stream(in.arena().make<MapItems>(source, callee_of(in, args, 0), nullptr));
  std::optional<Value> attribute, otherwise;
  for (const auto& [name, value] : args.named) {
    if (name == "attribute") attribute = value;
    else if (name == "default") otherwise = value;
    else throw Fault(fmt::format("map has no argument '{}'", name));
  }
  if (!attribute) throw Fault("map needs the name of a filter, or an attribute");
  if (otherwise && otherwise->is(Type::none)) otherwise.reset();
  return stream(in.arena().make<MapItems>(
      source, nullptr, in.arena().make<ArenaPath>(in.arena(), path_of(attribute, false, otherwise))));
}

Value select(Interpreter& in, const Value& v, const Args& args) { return chosen<false, true>(in, v, args); }
Value reject(Interpreter& in, const Value& v, const Args& args) { return chosen<false, false>(in, v, args); }
Value selectattr(Interpreter& in, const Value& v, const Args& args) { return chosen<true, true>(in, v, args); }
Value rejectattr(Interpreter& in, const Value& v, const Args& args) { return chosen<true, false>(in, v, args); }

Value unique(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("unique", args, {"case_sensitive", "attribute"});
  ArenaPath* path = in.arena().make<ArenaPath>(in.arena(), path_of(a[1], !flag(a[0])));
  return stream(in.arena().make<UniqueItems>(lazily(in, v), path, in.new_list()));
}

Value reverse(Interpreter& in, const Value& v, const Args& args) {
  if (!args.positional.empty() || !args.named.empty()) throw Fault("reverse takes no arguments");
  if (v.is_string()) return slice(in, v, Value::none(), Value::none(), Value::of(int64_t{-1}));
  List* all = in.to_list(v);
  std::reverse(all->items.begin(), all->items.end());
  // reversed() of a sequence is an iterator; of what has no order backwards, a list.
  if (v.is(Type::object) && v.object->kind == ObjectKind::iterator) return Value::of(all);
  return stream(in.iterate(Value::of(all)));
}

Value sort(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("sort", args, {"reverse", "case_sensitive", "attribute"});
  std::vector<Path> paths;
  if (a[2] && a[2]->is_string()) {
    std::string_view rest = a[2]->str();
    for (;;) {
      const size_t comma = rest.find(',');
      paths.push_back(path_of(Value::of(rest.substr(0, comma)), !flag(a[1])));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.push_back(path_of(a[2], !flag(a[1])));
  }
  return Value::of(sorted(in, paths, in.to_list(v), flag(a[0])));
}

Value dictsort(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("dictsort", args, {"case_sensitive", "by", "reverse"});
  if (v.is_undefined()) undefined_used(v);
  if (!v.is(Type::dict)) throw Fault(fmt::format("dictsort needs a mapping, not '{}'", type_name(v)));
  int64_t position = 0;
  if (a[1]) {
    const std::string_view by = a[1]->is_string() ? a[1]->str() : "";
    if (by != "key" && by != "value") throw Fault("dictsort sorts by 'key' or 'value'");
    position = by == "value";
  }
  const Path path = path_of(Value::of(position), !flag(a[0]));
  return Value::of(sorted(in, {path}, in.to_list(dict_items(in, v)), flag(a[2])));
}

Value groupby(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const std::optional<Value> otherwise = a[1] && !a[1]->is(Type::none) ? a[1] : std::nullopt;
  const bool fold = !flag(a[2]);
  const Path path = path_of(a[0], fold, otherwise), plain = path_of(a[0], false, otherwise);
  const List* all = sorted(in, {path}, in.to_list(v), false);
  List* groups = in.new_list();
  List* members = nullptr;
  Value key;
  for (const Value& x : all->items) {
    const Value k = path.get(in, x);
    if (!members || !equal(in, k, key)) {
      members = in.new_list();
      List* group = in.new_list();
      group->is_group = true;
      group->items.push_back(plain.get(in, x));
      group->items.push_back(Value::of(members));
      groups->items.push_back(Value::tuple(group));
      key = k;
    }
    members->items.push_back(x);
  }
  return Value::of(groups);
}

Value min(Interpreter& in, const Value& v, const Args& args) { return extreme(in, v, args, false); }
Value max(Interpreter& in, const Value& v, const Args& args) { return extreme(in, v, args, true); }

Value sum(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("sum", args, {"attribute", "start"});
  const Path path = path_of(a[0]);
  Value total = a.value(1, Value::of(int64_t{0}));
  if (total.is_string()) throw Fault("sum cannot add strings");
  Iterator* it = in.iterate(v);
  for (Value x; it->next(in, x);) total = arithmetic(in, Op::add, total, path.get(in, x));
  return total;
}

Value batch(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("batch", args, {"linecount", "fill_with"}, 1);
  const int64_t n = index_of(*a[0], "linecount");
  if (!in.apply_test("iterable", v, {})) return stream(lazily(in, v));
  List* rows = in.new_list();
  List* row = nullptr;
  Iterator* it = in.iterate(v);
  for (Value x; it->next(in, x);) {
    if (!row || static_cast<int64_t>(row->items.size()) == n) rows->items.push_back(Value::of(row = in.new_list()));
    row->items.push_back(x);
  }
  if (row && a[1] && !a[1]->is(Type::none)) {
    if (n > in.limits().range_max) throw Fault(fmt::format("batch: rows of {} items are too long", n), kRangeLimit);
    while (static_cast<int64_t>(row->items.size()) < n) row->items.push_back(*a[1]);
  }
  return stream(in.iterate(Value::of(rows)));
}

Value slices(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("slice", args, {"slices", "fill_with"}, 1);
  const int64_t n = index_of(*a[0], "slices");
  if (!in.apply_test("iterable", v, {})) return stream(lazily(in, v));
  if (n == 0) throw Fault("slice: integer division or modulo by zero");
  if (n > in.limits().range_max) throw Fault(fmt::format("slice: {} columns are too many", n), kRangeLimit);
  const List* all = in.to_list(v);
  List* columns = in.new_list();
  const auto size = static_cast<int64_t>(all->items.size());
  int64_t at = 0;
  for (int64_t k = 0; k < n; ++k) {
    List* column = in.new_list();
    const int64_t here = size / n + (k < size % n ? 1 : 0);
    for (int64_t i = 0; i < here; ++i) column->items.push_back(all->items[static_cast<size_t>(at++)]);
    if (a[1] && !a[1]->is(Type::none) && k >= size % n) column->items.push_back(*a[1]);
    columns->items.push_back(Value::of(column));
  }
  return stream(in.iterate(Value::of(columns)));
}

}  // namespace sequence_filters
}  // namespace hearth::text::jinja
