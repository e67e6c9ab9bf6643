#include "text/template/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "text/template/formatting.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {
namespace {

[[noreturn]] void unsupported(std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) undefined_used(a);
  if (b.is_undefined()) undefined_used(b);
  throw Fault(fmt::format("unsupported operands for {}: '{}' and '{}'", op, type_name(a), type_name(b)));
}

constexpr std::string_view kOpNames[] = {
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
std::string_view op_name(Op op) { return kOpNames[static_cast<size_t>(op)]; }

[[noreturn]] void overflow() { throw Fault("an integer does not fit 64 bits"); }

// Exact comparison of an integer with a double: -1, 0, 1; 2 for NaN.
int compare_mixed(int64_t i, double d) {
  if (std::isnan(d)) return 2;
  if (d >= 9223372036854775808.0) return -1;
  if (d < -9223372036854775808.0) return 1;
  const double whole = std::floor(d);
  const auto w = static_cast<int64_t>(whole);
  if (i != w) return i < w ? -1 : 1;
  return d > whole ? -1 : 0;
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_int() && b.is_int()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
  if (a.is_int()) return compare_mixed(a.as_int(), b.floating);
  if (b.is_int()) {
    const int c = compare_mixed(b.as_int(), a.floating);
    return c == 2 ? 2 : -c;
  }
  if (std::isnan(a.floating) || std::isnan(b.floating)) return 2;
  return a.floating < b.floating ? -1 : a.floating > b.floating ? 1 : 0;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw Fault("0 cannot be raised to a negative power");
    return Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value::of(exponent == 0 ? int64_t{1} : base);
  if (base == -1) return Value::of(exponent % 2 == 0 ? int64_t{1} : int64_t{-1});
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) overflow();
  return Value::of(result);
}

Value integer_arithmetic(Op op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &r)) overflow();
      return Value::of(r);
    case Op::sub:
      if (__builtin_sub_overflow(a, b, &r)) overflow();
      return Value::of(r);
    case Op::mul:
      if (__builtin_mul_overflow(a, b, &r)) overflow();
      return Value::of(r);
    case Op::div:
      if (b == 0) throw Fault("division by zero");
      return Value::of(static_cast<double>(a) / static_cast<double>(b));
    case Op::floordiv:
    case Op::mod: {
      if (b == 0) throw Fault("integer division or modulo by zero");
      if (b == -1) {
        if (op == Op::mod) return Value::of(int64_t{0});
        if (a == INT64_MIN) overflow();
        return Value::of(-a);
      }
      int64_t q = a / b, m = a % b;
      if (m != 0 && (m < 0) != (b < 0)) --q, m += b;
      return Value::of(op == Op::mod ? m : q);
    }
    default: return integer_power(a, b);
  }
}

Value float_arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::add: return Value::of(a + b);
    case Op::sub: return Value::of(a - b);
    case Op::mul: return Value::of(a * b);
    case Op::div:
      if (b == 0) throw Fault("float division by zero");
      return Value::of(a / b);
    case Op::floordiv:
    case Op::mod: {  // as CPython's float_divmod
      if (b == 0) throw Fault("float floor division or modulo by zero");
      double m = std::fmod(a, b);
      double q = (a - m) / b;
      if (m != 0) {
        if ((b < 0) != (m < 0)) m += b, q -= 1;
      } else {
        m = std::copysign(0.0, b);
      }
      if (op == Op::mod) return Value::of(m);
      if (q == 0) return Value::of(std::copysign(0.0, a / b));
      double whole = std::floor(q);
      if (q - whole > 0.5) whole += 1;
      return Value::of(whole);
    }
    default: {
      if (a == 0 && b < 0) throw Fault("0.0 cannot be raised to a negative power");
      const double r = std::pow(a, b);
      if (std::isnan(r) && !std::isnan(a) && !std::isnan(b)) throw Fault("complex numbers are not supported");
      if (std::isinf(r) && !std::isinf(a) && !std::isinf(b)) throw Fault("a power is out of range");
      return Value::of(r);
    }
  }
}

Value repeated(Interpreter& in, const Value& v, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (v.is_string()) {
    if (v.length == 0 || times == 0) return Value::of(std::string_view(""));
    if (static_cast<size_t>(times) > in.bytes_max() / v.length)
      throw Fault(fmt::format("a string of {} times {} bytes is beyond {} bytes", times, v.length, in.bytes_max()),
                  kOutputLimit);
    Text s = in.text();
    s.reserve(v.length * static_cast<size_t>(times));
    for (int64_t i = 0; i < times; ++i) s += v.str();
    return in.string(s);
  }
  List* out = in.new_list();
  out->items.reserve(0);
  for (int64_t i = 0; i < times && !v.list->items.empty(); ++i) {
    in.spend(static_cast<int64_t>(v.list->items.size()));
    out->items.insert(out->items.end(), v.list->items.begin(), v.list->items.end());
  }
  return v.is(Type::list) ? Value::of(out) : Value::tuple(out);
}

}  // namespace

void undefined_used(const Value& v) {
  switch (v.absence) {
    case Absence::name: throw Fault(fmt::format("'{}' is undefined", v.str()));
    case Absence::attribute: throw Fault(fmt::format("there is no attribute or item '{}'", v.str()));
    case Absence::unsafe: throw Fault(fmt::format("access to attribute '{}' is refused", v.str()));
    case Absence::hint: break;
  }
  throw Fault(std::string(v.str()));
}

bool truth(const Value& v) {
  switch (v.type) {
    case Type::undefined:
    case Type::none: return false;
    case Type::boolean: return v.boolean;
    case Type::integer: return v.integer != 0;
    case Type::floating: return v.floating != 0;
    case Type::string: return v.length != 0;
    case Type::list:
    case Type::tuple: return !v.list->items.empty();
    case Type::dict: return !v.dict->entries.empty();
    case Type::object: break;
  }
  switch (v.object->kind) {
    case ObjectKind::range: return static_cast<const Range*>(v.object)->size > 0;
    case ObjectKind::view: return !static_cast<const DictView*>(v.object)->dict->entries.empty();
    default: return true;
  }
}

bool equal(Interpreter& in, const Value& a, const Value& b) {
  in.spend(1);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::undefined:
    case Type::none: return true;
    case Type::string: in.spend(static_cast<int64_t>(std::min(a.length, b.length) / 512)); return a.str() == b.str();
    case Type::list:
    case Type::tuple: {
      const Interpreter::Depth depth(in);
      if (a.list->items.size() != b.list->items.size()) return false;
      for (size_t i = 0; i < a.list->items.size(); ++i)
        if (!equal(in, a.list->items[i], b.list->items[i])) return false;
      return true;
    }
    case Type::dict: {
      const Interpreter::Depth depth(in);
      if (a.dict->entries.size() != b.dict->entries.size()) return false;
      for (const auto& [key, value] : a.dict->entries) {
        const Value* other = find_key(in, *b.dict, key);
        if (!other || !equal(in, value, *other)) return false;
      }
      return true;
    }
    default: break;
  }
  if (a.object == b.object) return true;
  if (a.object->kind != ObjectKind::range || b.object->kind != ObjectKind::range) return false;
  const auto& x = *static_cast<const Range*>(a.object);
  const auto& y = *static_cast<const Range*>(b.object);
  return x.size == y.size && (x.size == 0 || (x.start == y.start && (x.size == 1 || x.step == y.step)));
}

bool compare(Interpreter& in, Op op, const Value& a, const Value& b) {
  if (op == Op::eq) return equal(in, a, b);
  if (op == Op::ne) return !equal(in, a, b);
  if (op == Op::in) return contains(in, b, a);
  if (op == Op::not_in) return !contains(in, b, a);
  in.spend(1);
  int order = 0;
  if (a.is_number() && b.is_number()) {
    order = compare_numbers(a, b);
    if (order == 2) return false;
  } else if (a.is_string() && b.is_string()) {
    in.spend(static_cast<int64_t>(std::min(a.length, b.length) / 512));
    order = a.str().compare(b.str());  // byte order of UTF-8 is code point order
  } else if (a.is_sequence() && a.type == b.type) {
    const Interpreter::Depth depth(in);
    const auto &x = a.list->items, &y = b.list->items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (!equal(in, x[i], y[i])) return compare(in, op, x[i], y[i]);
    order = x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  } else {
    unsupported(op_name(op), a, b);
  }
  switch (op) {
    case Op::lt: return order < 0;
    case Op::le: return order <= 0;
    case Op::gt: return order > 0;
    default: return order >= 0;
  }
}

bool less(Interpreter& in, const Value& a, const Value& b) { return compare(in, Op::lt, a, b); }

bool contains(Interpreter& in, const Value& container, const Value& v) {
  switch (container.type) {
    case Type::string:
      if (!v.is_string()) {
        if (v.is_undefined()) throw Fault("'in <string>' needs a string on the left, not an undefined value");
        throw Fault(fmt::format("'in <string>' needs a string on the left, not '{}'", type_name(v)));
      }
      in.spend(static_cast<int64_t>(container.length / 512));
      return find_bytes(container.str(), v.str()) != std::string_view::npos;
    case Type::dict:
      if (!hashable(v)) throw Fault(fmt::format("unhashable type: '{}'", type_name(v)));
      return find_key(in, *container.dict, v) != nullptr;
    case Type::list:
    case Type::tuple:
      for (const Value& x : container.list->items)
        if (equal(in, x, v)) return true;
      return false;
    case Type::undefined: return false;
    default: break;
  }
  if (container.is(Type::object) && container.object->kind == ObjectKind::range && v.is_int()) {
    const auto& r = *static_cast<const Range*>(container.object);
    int64_t offset = 0;
    if (r.size == 0 || __builtin_sub_overflow(v.as_int(), r.start, &offset)) return false;
    return offset % r.step == 0 && offset / r.step >= 0 && offset / r.step < r.size;
  }
  if (!container.is(Type::object)) throw Fault(fmt::format("'{}' is not iterable", type_name(container)));
  Iterator* it = in.iterate(container);
  for (Value x; it->next(in, x);)
    if (equal(in, x, v)) return true;
  return false;
}

Value arithmetic(Interpreter& in, Op op, const Value& a, const Value& b) {
  in.spend(1);
  if (a.is_int() && b.is_int()) return integer_arithmetic(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return float_arithmetic(op, a.as_double(), b.as_double());
  if (op == Op::mod && a.is_string()) return in.string(percent_format(in, a.str(), b));
  if (op == Op::add && a.is_string() && b.is_string()) {
    Text s = in.text();
    if (a.length + b.length > in.bytes_max())
      throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
    s.reserve(a.length + b.length);
    s += a.str();
    s += b.str();
    return in.string(s);
  }
  if (op == Op::add && a.is_sequence() && a.type == b.type) {
    List* out = in.new_list();
    out->items.reserve(a.list->items.size() + b.list->items.size());
    out->items.insert(out->items.end(), a.list->items.begin(), a.list->items.end());
    out->items.insert(out->items.end(), b.list->items.begin(), b.list->items.end());
    return a.is(Type::list) ? Value::of(out) : Value::tuple(out);
  }
  if (op == Op::mul) {
    if ((a.is_string() || a.is_sequence()) && b.is_int()) return repeated(in, a, b.as_int());
    if ((b.is_string() || b.is_sequence()) && a.is_int()) return repeated(in, b, a.as_int());
  }
  unsupported(op_name(op), a, b);
}

Value negated(const Value& v) {
  if (v.is_int()) {
    if (v.as_int() == INT64_MIN) overflow();
    return Value::of(-v.as_int());
  }
  if (v.is(Type::floating)) return Value::of(-v.floating);
  if (v.is_undefined()) undefined_used(v);
  throw Fault(fmt::format("bad operand for a sign: '{}'", type_name(v)));
}

std::optional<int64_t> length_of(Interpreter& in, const Value& v) {
  switch (v.type) {
    case Type::undefined: return 0;
    case Type::string:
      in.spend(static_cast<int64_t>(v.length / 512));
      return static_cast<int64_t>(count_points(v.str()));
    case Type::list:
    case Type::tuple: return static_cast<int64_t>(v.list->items.size());
    case Type::dict: return static_cast<int64_t>(v.dict->entries.size());
    case Type::object: break;
    default: return std::nullopt;
  }
  switch (v.object->kind) {
    case ObjectKind::range: return static_cast<const Range*>(v.object)->size;
    case ObjectKind::view: return static_cast<int64_t>(static_cast<const DictView*>(v.object)->dict->entries.size());
    case ObjectKind::loop: return in.loop_length(*static_cast<Loop*>(v.object));
    default: return std::nullopt;
  }
}

bool hashable(const Value& v) {
  if (v.is(Type::list) || v.is(Type::dict)) return false;
  if (!v.is(Type::tuple)) return true;
  // Tuples nest only through literals and pairs, whose depth the parser bounds; 100 is beyond any of them.
  const auto deep = [](const auto& self, const Value& x, int depth) -> bool {
    if (x.is(Type::list) || x.is(Type::dict) || depth > 100) return false;
    if (!x.is(Type::tuple)) return true;
    return std::all_of(x.list->items.begin(), x.list->items.end(),
                       [&](const Value& y) { return self(self, y, depth + 1); });
  };
  return deep(deep, v, 0);
}

Value* find_key(Interpreter& in, Dict& d, std::string_view key) {
  in.spend(static_cast<int64_t>(d.entries.size() / 16));
  for (auto& [k, v] : d.entries)
    if (k.is_string() && k.str() == key) return &v;
  return nullptr;
}

Value* find_key(Interpreter& in, Dict& d, const Value& key) {
  if (key.is_string()) return find_key(in, d, key.str());
  for (auto& [k, v] : d.entries)
    if (equal(in, k, key)) return &v;
  return nullptr;
}

void set_key(Interpreter& in, Dict& d, const Value& key, const Value& v) {
  if (!hashable(key)) throw Fault(fmt::format("unhashable type: '{}'", type_name(key)));
  if (Value* old = find_key(in, d, key)) *old = v;
  else d.entries.emplace_back(key, v);
}

int64_t index_of(const Value& v, std::string_view what) {
  if (v.is_int()) return v.as_int();
  if (v.is_undefined()) undefined_used(v);
  throw Fault(fmt::format("{} must be an integer, not '{}'", what, type_name(v)));
}

Indices slice_indices(const Value& begin, const Value& end, const Value& step, int64_t length) {
  const int64_t s = step.is(Type::none) ? 1 : index_of(step, "a slice's step");
  if (s == 0) throw Fault("a slice's step is zero");
  const auto clamp = [&](const Value& v, int64_t otherwise) {
    if (v.is(Type::none)) return otherwise;
    int64_t i = index_of(v, "a slice's index");
    const int64_t low = s < 0 ? -1 : 0, high = s < 0 ? length - 1 : length;
    if (i < 0) i = i < -length ? low : std::max(i + length, low);
    return std::min(i, high);
  };
  const int64_t b = clamp(begin, s < 0 ? length - 1 : 0);
  const int64_t e = clamp(end, s < 0 ? -1 : length);
  int64_t count = 0;
  if (s > 0 && b < e) count = (e - b - 1) / s + 1;
  if (s < 0 && e < b) count = (b - e - 1) / (s == INT64_MIN ? INT64_MAX : -s) + 1;
  return {b, s, count};
}

Value slice(Interpreter& in, const Value& of, const Value& begin, const Value& end, const Value& step) {
  if (of.is_string()) {
    const std::string_view s = of.str();
    in.spend(static_cast<int64_t>(s.size() / 256));
    const bool ascii = std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    const auto length = static_cast<int64_t>(ascii ? s.size() : count_points(s));
    const Indices at = slice_indices(begin, end, step, length);
    if (at.count == 0) return Value::of(std::string_view(""));
    if (at.step == 1) {
      const size_t from = ascii ? static_cast<size_t>(at.begin) : byte_of_point(s, static_cast<size_t>(at.begin));
      const std::string_view tail = s.substr(from);
      return Value::of(
          tail.substr(0, ascii ? static_cast<size_t>(at.count) : byte_of_point(tail, static_cast<size_t>(at.count))));
    }
    std::vector<size_t> starts;
    for (size_t i = 0; i < s.size();) {
      starts.push_back(i);
      next_point(s, i);
    }
    in.spend(static_cast<int64_t>(starts.size() / 16));
    Text out = in.text();
    for (int64_t k = 0; k < at.count; ++k) {
      const size_t from = starts[static_cast<size_t>(at.begin + k * at.step)];
      size_t behind = from;
      next_point(s, behind);
      out += s.substr(from, behind - from);
    }
    return in.string(out);
  }
  if (of.is_sequence()) {
    const Indices at = slice_indices(begin, end, step, static_cast<int64_t>(of.list->items.size()));
    List* out = in.new_list();
    out->items.reserve(static_cast<size_t>(at.count));
    for (int64_t k = 0; k < at.count; ++k)
      out->items.push_back(of.list->items[static_cast<size_t>(at.begin + k * at.step)]);
    return of.is(Type::list) ? Value::of(out) : Value::tuple(out);
  }
  if (of.is(Type::object) && of.object->kind == ObjectKind::range) {
    const auto& r = *static_cast<const Range*>(of.object);
    const Indices at = slice_indices(begin, end, step, r.size);
    if (at.count == 0) return Value::of(in.arena().make<Range>(r.start, r.step, 0));
    const int64_t size = at.count;
    const int64_t by = size == 1 ? r.step : r.step * at.step;
    return Value::of(in.arena().make<Range>(r.at(at.begin), by, size));
  }
  if (of.is_undefined()) undefined_used(of);
  throw Fault(fmt::format("'{}' cannot be sliced", type_name(of)));
}

size_t find_bytes(std::string_view text, std::string_view what, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (what.empty()) return from;
  const void* p = memmem(text.data() + from, text.size() - from, what.data(), what.size());
  return p ? static_cast<size_t>(static_cast<const char*>(p) - text.data()) : std::string_view::npos;
}

size_t rfind_bytes(std::string_view text, std::string_view what) {
  if (what.size() > text.size()) return std::string_view::npos;
  if (what.size() <= 16) return text.rfind(what);
  // Mirrored, so that the linear search serves the last match as well.
  const std::string mirror(text.rbegin(), text.rend()), target(what.rbegin(), what.rend());
  const size_t at = find_bytes(mirror, target);
  return at == std::string_view::npos ? at : text.size() - at - what.size();
}

}  // namespace hearth::text::jinja
