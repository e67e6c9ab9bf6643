// The global functions of templates, and the binding of arguments.
#include <fmt/format.h>

#include <algorithm>

#include "text/template/formatting.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"

namespace hearth::text::jinja {

void bind_into(std::string_view function, const Args& args, const std::string_view* names, size_t n, size_t required,
               std::optional<Value>* out) {
  if (args.positional.size() > n)
    throw Fault(fmt::format("{} takes at most {} arguments, {} given", function, n, args.positional.size()));
  std::copy(args.positional.begin(), args.positional.end(), out);
  for (const auto& [name, v] : args.named) {
    const auto* it = std::find(names, names + n, name);
    if (it == names + n) throw Fault(fmt::format("{} has no argument '{}'", function, name));
    std::optional<Value>& slot = out[it - names];
    if (slot) throw Fault(fmt::format("{} got two values for its argument '{}'", function, name));
    slot = v;
  }
  for (size_t i = 0; i < required; ++i)
    if (!out[i]) throw Fault(fmt::format("{} lacks its argument '{}'", function, names[i]));
}

namespace {

Value range(Interpreter& in, const Args& args) {
  if (!args.named.empty() || args.positional.empty() || args.positional.size() > 3)
    throw Fault("range takes one to three arguments");
  const auto number = [&](size_t i) { return index_of(args.positional[i], "an argument of range"); };
  const int64_t start = args.positional.size() == 1 ? 0 : number(0);
  const int64_t stop = args.positional.size() == 1 ? number(0) : number(1);
  const int64_t step = args.positional.size() == 3 ? number(2) : 1;
  if (step == 0) throw Fault("the step of a range is zero");
  const bool runs = step > 0 ? start < stop : start > stop;
  const uint64_t span = runs ? (step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                         : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop))
                             : 0;
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t size = span == 0 ? 0 : (span - 1) / by + 1;
  if (size > static_cast<uint64_t>(in.limits().range_max))
    throw Fault(fmt::format("a range of {} items, at most {} are allowed", size, in.limits().range_max), kRangeLimit);
  return Value::of(static_cast<Object*>(in.arena().make<Range>(start, step, static_cast<int64_t>(size))));
}

Dict* made_dict(Interpreter& in, const Args& args) {
  if (args.positional.size() > 1) throw Fault("dict takes at most one positional argument");
  Dict* d = in.new_dict();
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.is(Type::dict)) {
      d->entries = source.dict->entries;
    } else {
      Iterator* it = in.iterate(source);
      for (Value pair; it->next(in, pair);) {
        const List* two = in.to_list(pair);
        if (two->items.size() != 2)
          throw Fault(fmt::format("an entry of dict has {} items, 2 are needed", two->items.size()));
        set_key(in, *d, two->items[0], two->items[1]);
      }
    }
  }
  for (const auto& [name, v] : args.named) set_key(in, *d, in.string(name), v);
  return d;
}

Value name_space(Interpreter& in, const Args& args) {
  Dict* d = made_dict(in, args);
  for (const auto& [key, v] : d->entries)
    if (key.is_string() && key.str().starts_with("_"))
      throw Fault(fmt::format("the attribute '{}' of a namespace is refused", key.str()));
  return Value::of(static_cast<Object*>(in.arena().make<Namespace>(d)));
}

Value cycler(Interpreter& in, const Args& args) {
  if (args.positional.empty() || !args.named.empty()) throw Fault("cycler needs at least one item");
  List* items = in.new_list();
  items->items.assign(args.positional.begin(), args.positional.end());
  return Value::of(static_cast<Object*>(in.arena().make<Cycler>(items)));
}

Value joiner(Interpreter& in, const Args& args) {
  const auto a = bind("joiner", args, {"sep"});
  return Value::of(static_cast<Object*>(in.arena().make<Joiner>(a.value(0, Value::of(std::string_view(", "))))));
}

Value raise_exception(Interpreter& in, const Args& args) {
  const auto a = bind("raise_exception", args, {"message"}, 1);
  throw Fault(to_str(in, *a[0]).bytes());
}

// The fields of C's strftime; unknown ones are an error, widths are not supported.
Value strftime_now(Interpreter& in, const Args& args) {
  const auto a = bind("strftime_now", args, {"format"}, 1);
  if (!a[0]->is_string()) throw Fault("the format of strftime_now must be a string");
  if (!in.now()) throw Fault("the template asks for the time and none was given");
  const std::string_view format = a[0]->str();
  Text out = in.text();
  for (size_t i = 0; i < format.size(); ++i) {
    in.spend(1);
    if (format[i] != '%') {
      out += format.substr(i, 1);
      continue;
    }
    std::string field = "%";
    for (++i; i < format.size() && std::string_view("-_0^#").find(format[i]) != std::string_view::npos; ++i)
      if (field.size() < 4) field += format[i];
    if (i >= format.size() ||
        std::string_view("aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyYfzZ%").find(format[i]) == std::string_view::npos)
      throw Fault(fmt::format("'{}' is no time format", format.substr(0, 60)));
    const char c = format[i];
    if (c == 'f') out += "000000";  // the time is given in whole seconds
    if (c == 'f' || c == 'z' || c == 'Z') continue;
    field += c;
    char buffer[256];
    out += std::string_view(buffer, std::strftime(buffer, sizeof buffer, field.c_str(), &*in.now()));
  }
  return in.string(out);
}

const Function kFunctions[] = {
    {"cycler", cycler},
    {"dict", [](Interpreter& in, const Args& args) { return Value::of(made_dict(in, args)); }},
    {"joiner", joiner},
    {"namespace", name_space},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", strftime_now},
};

}  // namespace

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace hearth::text::jinja
