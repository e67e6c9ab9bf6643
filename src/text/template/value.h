// Values of the template language, with Python's meaning. A Value is a small trivially copyable handle; what it points
// to lives in the Arena of one render and dies with it, so cycles and deep nests need no care when they are dropped.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::text::jinja {

// What a template does wrong; the renderer adds template name and line and throws hearth::Error{invalid_argument}, or
// LimitError where a limit of RenderLimits is named.
class Fault : public std::runtime_error {
 public:
  explicit Fault(const std::string& what, std::string_view limit = {}) : std::runtime_error(what), limit_(limit) {}
  std::string_view limit() const { return limit_; }

 private:
  std::string_view limit_;  // one of the names in template.h; empty: none was passed
};

// Steps left, and the clock that bounds them. Every evaluation step, element visited and 64 bytes made cost one.
class Budget {
 public:
  Budget(int64_t steps, int64_t wall_ms, std::function<int64_t()> now_ms);
  void spend(int64_t steps) {
    left_ -= steps;
    if (left_ < next_check_) [[unlikely]]
      check();
  }
  int64_t left() const { return left_; }

 private:
  void check();
  int64_t total_, left_, next_check_, wall_ms_, begin_ms_;
  std::function<int64_t()> now_ms_;
};

// Bump allocator: nothing is freed before the render ends; allocation spends the budget, so memory is bounded by it.
class Arena : public std::pmr::memory_resource {
 public:
  explicit Arena(Budget& budget) : budget_(budget) {}
  std::string_view copy(std::string_view bytes);
  template <class T, class... A>
  T* make(A&&... args) {
    return new (allocate(sizeof(T), alignof(T))) T(std::forward<A>(args)...);
  }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  Budget& budget_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* at_ = nullptr;
  size_t room_ = 0;
};

enum class Type : uint8_t { undefined, none, boolean, integer, floating, string, list, tuple, dict, object };

// Why a value is undefined: decides the sentence when it is used.
enum class Absence : uint8_t { hint, name, attribute, unsafe };

struct List;
struct Dict;
struct Object;

struct Value {
  Type type = Type::undefined;
  Absence absence = Absence::hint;
  union {
    bool boolean;
    int64_t integer;
    double floating;
    const char* bytes = "";
    List* list;
    Dict* dict;
    Object* object;
  };
  size_t length = 0;  // of bytes

  static Value none() { return tagged(Type::none); }
  static Value of(bool v) {
    return with(Type::boolean, [&](Value& x) { x.boolean = v; });
  }
  static Value of(int64_t v) {
    return with(Type::integer, [&](Value& x) { x.integer = v; });
  }
  static Value of(double v) {
    return with(Type::floating, [&](Value& x) { x.floating = v; });
  }
  // The bytes must outlive the value: source text, input, or arena.
  static Value of(std::string_view v) {
    Value x = tagged(Type::string);
    x.bytes = v.data();
    x.length = v.size();
    return x;
  }
  static Value of(const char*) = delete;
  static Value of(List* v) {
    return with(Type::list, [&](Value& x) { x.list = v; });
  }
  static Value tuple(List* v) {
    return with(Type::tuple, [&](Value& x) { x.list = v; });
  }
  static Value of(Dict* v) {
    return with(Type::dict, [&](Value& x) { x.dict = v; });
  }
  static Value of(Object* v) {
    return with(Type::object, [&](Value& x) { x.object = v; });
  }
  static Value undefined(std::string_view text, Absence why = Absence::hint) {
    Value x = of(text);
    x.type = Type::undefined;
    x.absence = why;
    return x;
  }

  std::string_view str() const { return {bytes, length}; }  // of a string, or the text of an undefined value
  bool is(Type t) const { return type == t; }
  bool is_undefined() const { return type == Type::undefined; }
  bool is_string() const { return type == Type::string; }
  bool is_sequence() const { return type == Type::list || type == Type::tuple; }
  bool is_int() const { return type == Type::integer || type == Type::boolean; }  // as Python's isinstance(x, int)
  bool is_number() const { return is_int() || type == Type::floating; }
  int64_t as_int() const { return type == Type::boolean ? (boolean ? 1 : 0) : integer; }
  double as_double() const { return type == Type::floating ? floating : static_cast<double>(as_int()); }

 private:
  static Value tagged(Type t) {
    Value x;
    x.type = t;
    return x;
  }
  template <class F>
  static Value with(Type t, const F& set) {
    Value x = tagged(t);
    set(x);
    return x;
  }
};

struct List {
  explicit List(Arena& arena) : items(&arena) {}
  std::pmr::vector<Value> items;
  bool is_group = false;  // a tuple that the groupby filter made: it also has .grouper and .list
};

// Keeps insertion order; lookup is linear and spends the budget.
struct Dict {
  explicit Dict(Arena& arena) : entries(&arena) {}
  std::pmr::vector<std::pair<Value, Value>> entries;
};

class Interpreter;

// Positional and named arguments of a call.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

enum class ObjectKind : uint8_t {
  range,
  view,
  iterator,
  name_space,
  function,
  method,
  macro,
  loop,
  joiner,
  cycler,
  dict_type,
  slice
};

struct Object {
  explicit Object(ObjectKind k) : kind(k) {}
  ObjectKind kind;
};

struct Range : Object {
  Range(int64_t first, int64_t step_, int64_t size_)
      : Object(ObjectKind::range), start(first), step(step_), size(size_) {}
  int64_t start, step, size;
  int64_t at(int64_t i) const { return start + i * step; }
};

struct DictView : Object {
  enum class What : uint8_t { keys, values, items };
  DictView(Dict* d, What w) : Object(ObjectKind::view), dict(d), what(w) {}
  Dict* dict;
  What what;
};

// A Python iterator: consumed once, lazily. `chain` counts the iterators that one feeds on.
struct Iterator : Object {
  explicit Iterator(int depth = 0) : Object(ObjectKind::iterator), chain(depth) {}
  virtual bool next(Interpreter& in, Value& out) = 0;
  int chain;

 protected:
  ~Iterator() = default;  // lives in the arena
};

struct Namespace : Object {
  explicit Namespace(Dict* d) : Object(ObjectKind::name_space), attributes(d) {}
  Dict* attributes;
};

using BuiltinFn = Value (*)(Interpreter& in, const Args& args);
struct Function : Object {
  Function(std::string_view n, BuiltinFn f) : Object(ObjectKind::function), name(n), fn(f) {}
  std::string_view name;
  BuiltinFn fn;
};

using MethodFn = Value (*)(Interpreter& in, const Value& self, const Args& args);
struct Method : Object {
  Method(const Value& s, MethodFn f) : Object(ObjectKind::method), self(s), fn(f) {}
  Value self;
  MethodFn fn;
};

struct Joiner : Object {
  explicit Joiner(const Value& s) : Object(ObjectKind::joiner), separator(s) {}
  Value separator;
  bool used = false;
};

struct Cycler : Object {
  explicit Cycler(List* l) : Object(ObjectKind::cycler), items(l) {}
  List* items;
  size_t position = 0;
};

std::string_view type_name(const Value& v);  // Python's name: "str", "NoneType", ...

}  // namespace hearth::text::jinja
