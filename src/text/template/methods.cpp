// Methods of strings, lists, dicts, loops and cyclers.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/template/formatting.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {
namespace {

void takes(std::string_view method, const Args& args, size_t least, size_t most) {
  if (!args.named.empty()) throw Fault(fmt::format("{} takes no keyword arguments", method));
  if (args.positional.size() < least || args.positional.size() > most)
    throw Fault(fmt::format("{} takes {} to {} arguments, {} given", method, least, most, args.positional.size()));
}

std::string_view text_of(const Value& v, std::string_view what) {
  if (v.is_string()) return v.str();
  if (v.is_undefined()) undefined_used(v);
  throw Fault(fmt::format("{} must be a string, not '{}'", what, type_name(v)));
}

void charge(Interpreter& in, std::string_view s) { in.spend(static_cast<int64_t>(s.size() / 128)); }

// ---- case and classes ----

template <std::string (*convert)(std::string_view)>
Value cased(Interpreter& in, const Value& self, const Args& args) {
  takes("a case method", args, 0, 0);
  charge(in, self.str());
  return in.string_made_of(self.str(), convert(self.str()));
}

template <bool (*holds)(char32_t)>
Value all_are(Interpreter& in, const Value& self, const Args& args) {
  takes("a class method", args, 0, 0);
  charge(in, self.str());
  const std::string_view s = self.str();
  for (size_t i = 0; i < s.size();)
    if (!holds(next_point(s, i))) return Value::of(false);
  return Value::of(!s.empty());
}

template <bool upper>
Value all_cased(Interpreter& in, const Value& self, const Args& args) {
  takes("a class method", args, 0, 0);
  return Value::of(in.apply_test(upper ? "upper" : "lower", self, {}));
}

// ---- stripping and searching ----

template <Side side>
Value strip(Interpreter& in, const Value& self, const Args& args) {
  takes("strip", args, 0, 1);
  charge(in, self.str());
  if (args.positional.empty() || args.positional[0].is(Type::none)) return Value::of(strip_space(self.str(), side));
  return Value::of(strip_points(self.str(), text_of(args.positional[0], "the characters to strip"), side));
}

// The part of self that the optional arguments start and end choose, and its offset in code points.
struct Window {
  std::string_view text;
  int64_t offset = 0;
  bool valid = true;  // false when start lies behind the end of the string
};
Window window(Interpreter& in, const Value& self, const Args& args, size_t first) {
  if (args.positional.size() <= first) return {self.str(), 0, true};
  const Value begin = args.positional[first];
  const Value end = args.positional.size() > first + 1 ? args.positional[first + 1] : Value::none();
  const int64_t n = *length_of(in, self);
  const Indices at = slice_indices(begin, end, Value::none(), n);
  Window w;
  w.text = slice(in, self, begin, end, Value::none()).str();
  w.offset = at.begin;
  w.valid = begin.is(Type::none) || index_of(begin, "start") <= n;
  return w;
}

template <bool at_end>
Value affix(Interpreter& in, const Value& self, const Args& args) {
  takes(at_end ? "endswith" : "startswith", args, 1, 3);
  const Window w = window(in, self, args, 1);
  const auto fits = [&](const Value& v) {
    const std::string_view s = text_of(v, "a prefix or suffix");
    in.spend(static_cast<int64_t>(s.size() / 128));
    return w.valid && (at_end ? w.text.ends_with(s) : w.text.starts_with(s));
  };
  const Value& wanted = args.positional[0];
  if (!wanted.is(Type::tuple)) return Value::of(fits(wanted));
  for (const Value& v : wanted.list->items)
    if (fits(v)) return Value::of(true);
  return Value::of(false);
}

template <bool from_right, bool must_exist>
Value find(Interpreter& in, const Value& self, const Args& args) {
  takes("find", args, 1, 3);
  charge(in, self.str());
  const Window w = window(in, self, args, 1);
  const std::string_view what = text_of(args.positional[0], "the text to find");
  const size_t at = !w.valid     ? std::string_view::npos
                    : from_right ? rfind_bytes(w.text, what)
                                 : find_bytes(w.text, what);
  if (at != std::string_view::npos)
    return Value::of(w.offset + static_cast<int64_t>(count_points(w.text.substr(0, at))));
  if (must_exist) throw Fault("substring not found");
  return Value::of(int64_t{-1});
}

Value count(Interpreter& in, const Value& self, const Args& args) {
  takes("count", args, 1, 3);
  charge(in, self.str());
  const Window w = window(in, self, args, 1);
  const std::string_view what = text_of(args.positional[0], "the text to count");
  if (!w.valid) return Value::of(int64_t{0});
  if (what.empty()) return Value::of(static_cast<int64_t>(count_points(w.text)) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = find_bytes(w.text, what, at)) != std::string_view::npos; at += what.size()) {
    in.spend(1);
    ++n;
  }
  return Value::of(n);
}

Value replace(Interpreter& in, const Value& self, const Args& args) {
  takes("replace", args, 2, 3);
  charge(in, self.str());
  const std::string_view s = self.str(), from = text_of(args.positional[0], "the text to replace"),
                         to = text_of(args.positional[1], "the replacement");
  int64_t left = args.positional.size() == 3 ? index_of(args.positional[2], "count") : -1;
  if (left < 0) left = INT64_MAX;
  Text out = in.text();
  const auto add = [&](std::string_view part) {
    if (out.size() + part.size() > in.bytes_max())
      throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
    in.spend(1);
    out += part;
  };
  size_t at = 0;
  if (from.empty()) {
    while (left-- > 0) {
      add(to);
      if (at >= s.size()) return in.string(out);
      const size_t begin = at;
      next_point(s, at);
      add(s.substr(begin, at - begin));
    }
  } else {
    for (size_t hit; left > 0 && (hit = find_bytes(s, from, at)) != std::string_view::npos;
         at = hit + from.size(), --left) {
      add(s.substr(at, hit - at));
      add(to);
    }
    if (at == 0) return self;
  }
  add(s.substr(at));
  return in.string(out);
}

// ---- splitting and joining ----

Value strings(Interpreter& in, const std::vector<std::string_view>& parts) {
  List* list = in.new_list();
  list->items.reserve(parts.size());
  for (const std::string_view p : parts) list->items.push_back(Value::of(p));
  return Value::of(list);
}

void split_space(Interpreter& in, std::string_view s, int64_t times, bool from_right,
                 std::vector<std::string_view>& out) {
  for (;;) {
    s = strip_space(s, from_right ? Side::right : Side::left);
    if (s.empty()) return;
    in.spend(1);
    if (times-- == 0) {
      out.push_back(s);
      return;
    }
    if (!from_right) {
      size_t end = 0;
      while (end < s.size()) {
        size_t next = end;
        if (is_space(next_point(s, next))) break;
        end = next;
      }
      out.push_back(s.substr(0, end));
      s.remove_prefix(end);
    } else {
      size_t begin = s.size();
      while (begin > 0) {
        size_t before = begin - 1;
        while (before > 0 && continues_utf8(s[before])) --before;
        size_t at = before;
        if (is_space(next_point(s, at))) break;
        begin = before;
      }
      out.push_back(s.substr(begin));
      s = s.substr(0, begin);
    }
  }
}

template <bool from_right>
Value split(Interpreter& in, const Value& self, const Args& args) {
  const auto a = bind("split", args, {"sep", "maxsplit"});
  charge(in, self.str());
  std::string_view s = self.str();
  int64_t times = a[1] ? index_of(*a[1], "maxsplit") : -1;
  if (times < 0) times = -1;
  std::vector<std::string_view> parts;
  if (!a[0] || a[0]->is(Type::none)) {
    split_space(in, s, times, from_right, parts);
  } else {
    const std::string_view by = text_of(*a[0], "the separator");
    if (by.empty()) throw Fault("the separator is empty");
    while (times != 0) {
      in.spend(1);
      if (from_right) charge(in, s);
      const size_t at = from_right ? rfind_bytes(s, by) : find_bytes(s, by);
      if (at == std::string_view::npos) break;
      parts.push_back(from_right ? s.substr(at + by.size()) : s.substr(0, at));
      s = from_right ? s.substr(0, at) : s.substr(at + by.size());
      if (times > 0) --times;
    }
    parts.push_back(s);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return strings(in, parts);
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, const Args& args) {
  takes("partition", args, 1, 1);
  charge(in, self.str());
  const std::string_view s = self.str(), by = text_of(args.positional[0], "the separator");
  if (by.empty()) throw Fault("the separator is empty");
  const size_t at = from_right ? rfind_bytes(s, by) : find_bytes(s, by);
  List* list = in.new_list();
  if (at == std::string_view::npos) {
    for (const std::string_view part : {from_right ? "" : s, std::string_view(""), from_right ? s : ""})
      list->items.push_back(Value::of(part));
  } else {
    for (const std::string_view part : {s.substr(0, at), by, s.substr(at + by.size())})
      list->items.push_back(Value::of(part));
  }
  return Value::tuple(list);
}

// Line breaks of str.splitlines.
bool is_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

Value splitlines(Interpreter& in, const Value& self, const Args& args) {
  const auto a = bind("splitlines", args, {"keepends"});
  const bool keep = a[0] && truth(*a[0]);
  const std::string_view s = self.str();
  charge(in, s);
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < s.size();) {
    in.spend(1);
    size_t end = begin, behind = begin;
    while (behind < s.size()) {
      end = behind;
      const char32_t c = next_point(s, behind);
      if (is_break(c)) {
        if (c == '\r' && behind < s.size() && s[behind] == '\n') ++behind;
        break;
      }
      end = behind;
    }
    lines.push_back(s.substr(begin, (keep ? behind : end) - begin));
    begin = behind;
  }
  return strings(in, lines);
}

Value join(Interpreter& in, const Value& self, const Args& args) {
  takes("join", args, 1, 1);
  Text out = in.text();
  Iterator* it = in.iterate(args.positional[0]);
  bool first = true;
  for (Value v; it->next(in, v); first = false) {
    const std::string_view s = text_of(v, "an item to join");
    if (out.size() + s.size() + self.length > in.bytes_max())
      throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
    if (!first) out += self.str();
    out += s;
  }
  return in.string(out);
}

template <char align>
Value justified(Interpreter& in, const Value& self, const Args& args) {
  takes("a justifying method", args, 1, 2);
  const int64_t width = index_of(args.positional[0], "the width"), n = *length_of(in, self);
  const std::string_view fill = args.positional.size() > 1 ? text_of(args.positional[1], "the fill character") : " ";
  if (count_points(fill) != 1) throw Fault("the fill must be one character");
  if (width <= n) return self;
  if (width - n > static_cast<int64_t>(in.bytes_max() / fill.size()))
    throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
  const int64_t total = width - n;
  // str.center puts the odd space left when the width is odd.
  const int64_t left = align == '<' ? 0 : align == '>' ? total : total / 2 + (total & width & 1);
  Text out = in.text();
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.str();
  for (int64_t i = left; i < total; ++i) out += fill;
  return in.string(out);
}

Value zfill(Interpreter& in, const Value& self, const Args& args) {
  takes("zfill", args, 1, 1);
  const int64_t missing = index_of(args.positional[0], "the width") - *length_of(in, self);
  if (missing <= 0) return self;
  if (missing > static_cast<int64_t>(in.bytes_max()))
    throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
  const std::string_view s = self.str();
  Text out = in.text();
  const size_t sign = s.starts_with('-') || s.starts_with('+') ? 1 : 0;
  out += s.substr(0, sign);
  out += std::string(static_cast<size_t>(missing), '0');
  out += s.substr(sign);
  return in.string(out);
}

template <bool at_end>
Value without_affix(Interpreter&, const Value& self, const Args& args) {
  takes("removeprefix or removesuffix", args, 1, 1);
  std::string_view s = self.str();
  const std::string_view affix_text = text_of(args.positional[0], "the affix");
  if (at_end && s.ends_with(affix_text)) s.remove_suffix(affix_text.size());
  if (!at_end && s.starts_with(affix_text)) s.remove_prefix(affix_text.size());
  return Value::of(s);
}

Value format(Interpreter& in, const Value& self, const Args& args) {
  return in.string(brace_format(in, self.str(), args));
}

// ---- lists ----

Value list_append(Interpreter&, const Value& self, const Args& args) {
  takes("append", args, 1, 1);
  self.list->items.push_back(args.positional[0]);
  return Value::none();
}

Value list_pop(Interpreter&, const Value& self, const Args& args) {
  takes("pop", args, 0, 1);
  auto& items = self.list->items;
  const auto n = static_cast<int64_t>(items.size());
  int64_t i = args.positional.empty() ? -1 : index_of(args.positional[0], "the index");
  if (i < 0) i += n;
  if (i < 0 || i >= n) throw Fault(fmt::format("pop of item {} from a list of {}", i, n));
  const Value v = items[static_cast<size_t>(i)];
  items.erase(items.begin() + i);
  return v;
}

Value list_index(Interpreter& in, const Value& self, const Args& args) {
  takes("index", args, 1, 3);
  const auto n = static_cast<int64_t>(self.list->items.size());
  const Value begin = args.positional.size() > 1 ? args.positional[1] : Value::none();
  const Value end = args.positional.size() > 2 ? args.positional[2] : Value::none();
  const Indices at = slice_indices(begin, end, Value::none(), n);
  for (int64_t i = at.begin; i < at.begin + at.count; ++i)
    if (equal(in, self.list->items[static_cast<size_t>(i)], args.positional[0])) return Value::of(i);
  throw Fault("the item is not in the list");
}

Value list_count(Interpreter& in, const Value& self, const Args& args) {
  takes("count", args, 1, 1);
  int64_t n = 0;
  for (const Value& v : self.list->items) n += equal(in, v, args.positional[0]);
  return Value::of(n);
}

Value list_copy(Interpreter& in, const Value& self, const Args& args) {
  takes("copy", args, 0, 0);
  return Value::of(in.to_list(self));
}

// ---- ranges ----

Value range_index(Interpreter& in, const Value& self, const Args& args) {
  takes("index", args, 1, 1);
  if (!contains(in, self, args.positional[0])) throw Fault("the item is not in the range");
  const Range& r = *static_cast<Range*>(self.object);
  if (args.positional[0].is_int()) return Value::of((args.positional[0].as_int() - r.start) / r.step);
  for (int64_t i = 0; i < r.size; ++i)
    if (equal(in, Value::of(r.at(i)), args.positional[0])) return Value::of(i);
  throw Fault("the item is not in the range");
}

Value range_count(Interpreter& in, const Value& self, const Args& args) {
  takes("count", args, 1, 1);
  return Value::of(int64_t{contains(in, self, args.positional[0])});
}

// ---- dicts ----

Value dict_get(Interpreter& in, const Value& self, const Args& args) {
  takes("get", args, 1, 2);
  if (!hashable(args.positional[0])) throw Fault(fmt::format("unhashable type: '{}'", type_name(args.positional[0])));
  if (const Value* v = find_key(in, *self.dict, args.positional[0])) return *v;
  return args.positional.size() > 1 ? args.positional[1] : Value::none();
}

template <DictView::What what>
Value dict_view(Interpreter& in, const Value& self, const Args& args) {
  takes("a view of a dict", args, 0, 0);
  return Value::of(static_cast<Object*>(in.arena().make<DictView>(self.dict, what)));
}

Value dict_copy(Interpreter& in, const Value& self, const Args& args) {
  takes("copy", args, 0, 0);
  Dict* d = in.new_dict();
  d->entries = self.dict->entries;
  return Value::of(d);
}

Value dict_pop(Interpreter& in, const Value& self, const Args& args) {
  takes("pop", args, 1, 2);
  auto& entries = self.dict->entries;
  if (const Value* v = find_key(in, *self.dict, args.positional[0])) {
    const Value found = *v;
    entries.erase(std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return &e.second == v; }));
    return found;
  }
  if (args.positional.size() > 1) return args.positional[1];
  throw Fault("the key to pop is missing");
}

// Names that Python's types have and the sandbox refuses: not even a key of that name is reached by a dot.
Value refused(Interpreter&, const Value&, const Args&) { throw Fault("a method that changes a value is refused"); }

// ---- loops and cyclers ----

Value loop_cycle(Interpreter&, const Value& self, const Args& args) {
  if (args.positional.empty() || !args.named.empty()) throw Fault("loop.cycle needs items");
  return args.positional[static_cast<size_t>(static_cast<Loop*>(self.object)->index0) % args.positional.size()];
}

Value loop_changed(Interpreter& in, const Value& self, const Args& args) {
  Loop& loop = *static_cast<Loop*>(self.object);
  List* now = in.new_list();
  now->items.assign(args.positional.begin(), args.positional.end());
  const bool changed = !loop.changed || !equal(in, Value::tuple(loop.changed), Value::tuple(now));
  if (changed) loop.changed = now;
  return Value::of(changed);
}

Value cycler_next(Interpreter&, const Value& self, const Args& args) {
  takes("next", args, 0, 0);
  Cycler& c = *static_cast<Cycler*>(self.object);
  const Value v = c.items->items[c.position];
  c.position = (c.position + 1) % c.items->items.size();
  return v;
}

Value cycler_reset(Interpreter&, const Value& self, const Args& args) {
  takes("reset", args, 0, 0);
  static_cast<Cycler*>(self.object)->position = 0;
  return Value::none();
}

struct Row {
  std::string_view name;
  MethodFn fn;
};

bool is_alnum(char32_t c) { return is_alpha(c) || is_digit(c); }

Value is_ascii(Interpreter&, const Value& self, const Args& args) {
  takes("isascii", args, 0, 0);
  const std::string_view s = self.str();
  return Value::of(std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

constexpr Row kStringMethods[] = {
    {"capitalize", cased<capitalized>},
    {"casefold", cased<to_lower>},
    {"center", justified<'^'>},
    {"count", count},
    {"endswith", affix<true>},
    {"find", find<false, false>},
    {"format", format},
    {"index", find<false, true>},
    {"isalnum", all_are<is_alnum>},
    {"isalpha", all_are<is_alpha>},
    {"isascii", is_ascii},
    {"isdecimal", all_are<is_digit>},
    {"isdigit", all_are<is_digit>},
    {"islower", all_cased<false>},
    {"isnumeric", all_are<is_digit>},
    {"isspace", all_are<is_space>},
    {"isupper", all_cased<true>},
    {"join", join},
    {"ljust", justified<'<'>},
    {"lower", cased<to_lower>},
    {"lstrip", strip<Side::left>},
    {"partition", partition<false>},
    {"removeprefix", without_affix<false>},
    {"removesuffix", without_affix<true>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justified<'>'>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<Side::right>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", affix<false>},
    {"strip", strip<Side::both>},
    {"swapcase", cased<swapped_case>},
    {"title", cased<titled>},
    {"upper", cased<to_upper>},
    {"zfill", zfill},
};
constexpr Row kListMethods[] = {
    {"append", list_append}, {"clear", refused},    {"copy", list_copy}, {"count", list_count},
    {"extend", refused},     {"index", list_index}, {"insert", refused}, {"pop", list_pop},
    {"remove", refused},     {"reverse", refused},  {"sort", refused},
};
constexpr Row kTupleMethods[] = {{"count", list_count}, {"index", list_index}};
constexpr Row kDictMethods[] = {
    {"clear", refused},
    {"copy", dict_copy},
    {"get", dict_get},
    {"items", dict_view<DictView::What::items>},
    {"keys", dict_view<DictView::What::keys>},
    {"pop", dict_pop},
    {"popitem", refused},
    {"setdefault", refused},
    {"update", refused},
    {"values", dict_view<DictView::What::values>},
};
constexpr Row kRangeMethods[] = {{"count", range_count}, {"index", range_index}};
constexpr Row kLoopMethods[] = {{"changed", loop_changed}, {"cycle", loop_cycle}};
constexpr Row kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

template <size_t n>
MethodFn lookup(const Row (&rows)[n], std::string_view name) {
  const auto* row = std::lower_bound(rows, rows + n, name, [](const Row& r, std::string_view s) { return r.name < s; });
  return row != rows + n && row->name == name ? row->fn : nullptr;
}

}  // namespace

MethodFn find_method(const Value& self, std::string_view name) {
  switch (self.type) {
    case Type::string: return lookup(kStringMethods, name);
    case Type::list: return lookup(kListMethods, name);
    case Type::tuple: return lookup(kTupleMethods, name);
    case Type::dict: return lookup(kDictMethods, name);
    case Type::object: break;
    default: return nullptr;
  }
  if (self.object->kind == ObjectKind::range) return lookup(kRangeMethods, name);
  if (self.object->kind == ObjectKind::loop) return lookup(kLoopMethods, name);
  if (self.object->kind == ObjectKind::cycler) return lookup(kCyclerMethods, name);
  return nullptr;
}

}  // namespace hearth::text::jinja
