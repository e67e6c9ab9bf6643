// The tests of "x is name".
#include <fmt/format.h>

#include <algorithm>

#include "text/template/formatting.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {
namespace {

void takes(std::string_view test, const Args& args, size_t n) {
  if (args.positional.size() != n || !args.named.empty())
    throw Fault(
        fmt::format("test '{}' takes {} arguments, {} given", test, n, args.positional.size() + args.named.size()));
}

template <bool (*check)(Interpreter&, const Value&)>
bool plain(Interpreter& in, const Value& v, const Args& args) {
  takes("this", args, 0);
  return check(in, v);
}

template <Op op>
bool compared(Interpreter& in, const Value& v, const Args& args) {
  takes("comparison", args, 1);
  return compare(in, op, v, args.positional[0]);
}

bool is_object(const Value& v, ObjectKind kind) { return v.is(Type::object) && v.object->kind == kind; }

bool iterable(Interpreter&, const Value& v) {
  if (v.is(Type::object)) {
    const ObjectKind k = v.object->kind;
    return k == ObjectKind::range || k == ObjectKind::view || k == ObjectKind::iterator || k == ObjectKind::loop;
  }
  return v.is_string() || v.is_sequence() || v.is(Type::dict) || v.is_undefined();
}

bool callable(Interpreter&, const Value& v) {
  if (v.is_undefined()) return true;  // it has a call that fails
  if (!v.is(Type::object)) return false;
  const ObjectKind k = v.object->kind;
  return k == ObjectKind::function || k == ObjectKind::method || k == ObjectKind::macro || k == ObjectKind::loop ||
         k == ObjectKind::joiner || k == ObjectKind::dict_type;
}

bool same(const Value& a, const Value& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::none: return true;
    case Type::boolean: return a.boolean == b.boolean;
    case Type::integer: return a.integer == b.integer;
    case Type::floating: return a.floating == b.floating;
    case Type::string: return a.str() == b.str();
    case Type::list:
    case Type::tuple: return a.list == b.list;
    case Type::dict: return a.dict == b.dict;
    case Type::object: return a.object == b.object;
    case Type::undefined: return false;
  }
  return false;
}

bool all_cased(Interpreter& in, const Value& v, bool upper) {
  bool any = false;
  const std::string_view s = str_view(in, v);
  in.spend(static_cast<int64_t>(s.size() / 64));
  for (size_t i = 0; i < s.size();) {
    const char32_t c = next_point(s, i);
    if (upper ? is_lower(c) : is_upper(c)) return false;
    any |= upper ? is_upper(c) : is_lower(c);
  }
  return any;
}

bool modulo_is(Interpreter& in, const Value& v, int64_t divisor, int64_t rest) {
  return equal(in, arithmetic(in, Op::mod, v, Value::of(divisor)), Value::of(rest));
}

struct Row {
  std::string_view name;
  TestFn fn;
};

constexpr Row kTests[] = {
    {"!=", compared<Op::ne>},
    {"<", compared<Op::lt>},
    {"<=", compared<Op::le>},
    {"==", compared<Op::eq>},
    {">", compared<Op::gt>},
    {">=", compared<Op::ge>},
    {"boolean", plain<[](Interpreter&, const Value& v) { return v.is(Type::boolean); }>},
    {"callable", plain<callable>},
    {"defined", plain<[](Interpreter&, const Value& v) { return !v.is_undefined(); }>},
    {"divisibleby",
     [](Interpreter& in, const Value& v, const Args& args) {
       takes("divisibleby", args, 1);
       return equal(in, arithmetic(in, Op::mod, v, args.positional[0]), Value::of(int64_t{0}));
     }},
    {"eq", compared<Op::eq>},
    {"equalto", compared<Op::eq>},
    {"escaped", plain<[](Interpreter&, const Value&) { return false; }>},
    {"even", plain<[](Interpreter& in, const Value& v) { return modulo_is(in, v, 2, 0); }>},
    {"false", plain<[](Interpreter&, const Value& v) { return v.is(Type::boolean) && !v.boolean; }>},
    {"filter", plain<[](Interpreter&, const Value& v) { return v.is_string() && find_filter(v.str()) != nullptr; }>},
    {"float", plain<[](Interpreter&, const Value& v) { return v.is(Type::floating); }>},
    {"ge", compared<Op::ge>},
    {"greaterthan", compared<Op::gt>},
    {"gt", compared<Op::gt>},
    {"in", compared<Op::in>},
    {"integer", plain<[](Interpreter&, const Value& v) { return v.is(Type::integer); }>},
    {"iterable", plain<iterable>},
    {"le", compared<Op::le>},
    {"lessthan", compared<Op::lt>},
    {"lower", plain<[](Interpreter& in, const Value& v) { return all_cased(in, v, false); }>},
    {"lt", compared<Op::lt>},
    {"mapping", plain<[](Interpreter&, const Value& v) { return v.is(Type::dict); }>},
    {"ne", compared<Op::ne>},
    {"none", plain<[](Interpreter&, const Value& v) { return v.is(Type::none); }>},
    {"number", plain<[](Interpreter&, const Value& v) { return v.is_number(); }>},
    {"odd", plain<[](Interpreter& in, const Value& v) { return modulo_is(in, v, 2, 1); }>},
    {"sameas",
     [](Interpreter&, const Value& v, const Args& args) {
       takes("sameas", args, 1);
       return same(v, args.positional[0]);
     }},
    {"sequence", plain<[](Interpreter&, const Value& v) {
       return v.is_string() || v.is_sequence() || v.is(Type::dict) || v.is_undefined() ||
              is_object(v, ObjectKind::range);
     }>},
    {"string", plain<[](Interpreter&, const Value& v) { return v.is_string(); }>},
    {"test", plain<[](Interpreter&, const Value& v) { return v.is_string() && find_test(v.str()) != nullptr; }>},
    {"true", plain<[](Interpreter&, const Value& v) { return v.is(Type::boolean) && v.boolean; }>},
    {"undefined", plain<[](Interpreter&, const Value& v) { return v.is_undefined(); }>},
    {"upper", plain<[](Interpreter& in, const Value& v) { return all_cased(in, v, true); }>},
};

}  // namespace

TestFn find_test(std::string_view name) {
  const auto* row = std::lower_bound(std::begin(kTests), std::end(kTests), name,
                                     [](const Row& r, std::string_view n) { return r.name < n; });
  return row != std::end(kTests) && row->name == name ? row->fn : nullptr;
}

}  // namespace hearth::text::jinja
