// Filters over single values: text, numbers, JSON. Those over sequences stand in sequence_filters.cpp.
#include "base/ascii.h"
#include "text/template/filters.h"
#include "text/template/formatting.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace hearth::text::jinja {
namespace {

void charge(Interpreter& in, std::string_view s) { in.spend(static_cast<int64_t>(s.size() / 128)); }

void takes_none(std::string_view filter, const Args& args) {
  if (!args.positional.empty() || !args.named.empty())
    throw Fault(fmt::format("filter '{}' takes no arguments", filter));
}

// Calls the method of the text of a value.
Value text_method(Interpreter& in, const Value& v, std::string_view method, const Args& args) {
  const Value s = Value::of(str_view(in, v));
  return find_method(s, method)(in, s, args);
}

template <std::string (*convert)(std::string_view)>
Value cased(Interpreter& in, const Value& v, const Args& args) {
  takes_none("case", args);
  const std::string_view s = str_view(in, v);
  charge(in, s);
  return in.string_made_of(s, convert(s));
}

std::string title_words(std::string_view s) {
  std::string out;
  const auto starts_word = [](char32_t c) {
    return c == '-' || is_space(c) || c == '(' || c == '{' || c == '[' || c == '<';
  };
  for (size_t i = 0; i < s.size();) {
    const size_t begin = i;
    size_t end = i, behind_first = 0;
    while (end < s.size()) {
      size_t next = end;
      if (starts_word(next_point(s, next))) break;
      if (behind_first == 0) behind_first = next;
      end = next;
    }
    if (end > begin) {
      out += to_upper(s.substr(begin, behind_first - begin));
      out += to_lower(s.substr(behind_first, end - behind_first));
    }
    while (end < s.size()) {
      size_t next = end;
      if (!starts_word(next_point(s, next))) break;
      out += s.substr(end, next - end);
      end = next;
    }
    i = end;
  }
  return out;
}

Value tojson(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = a[0] && truth(*a[0]);
  style.sort_keys = a[3] && truth(*a[3]);
  if (a[1] && !a[1]->is(Type::none)) {
    style.lines = true;
    style.item_separator = ",";
    if (a[1]->is_string()) {
      style.indent = a[1]->str();
    } else {
      const int64_t n = index_of(*a[1], "indent");
      if (n > 1000) throw Fault(fmt::format("an indent of {} is too large", n));
      style.indent.assign(static_cast<size_t>(std::max<int64_t>(n, 0)), ' ');
    }
  }
  if (a[2] && !a[2]->is(Type::none)) {
    const List* two = in.to_list(*a[2]);
    if (two->items.size() != 2 || !two->items[0].is_string() || !two->items[1].is_string())
      throw Fault("separators must be two strings");
    style.item_separator = two->items[0].str();
    style.key_separator = two->items[1].str();
  }
  return in.string(to_json(in, v, style));
}

Value escape(Interpreter& in, const Value& v, const Args& args) {
  takes_none("escape", args);
  const std::string_view s = str_view(in, v);
  charge(in, s);
  Text out = in.text();
  size_t kept = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    const std::string_view name = c == '&'    ? "&amp;"
                                  : c == '<'  ? "&lt;"
                                  : c == '>'  ? "&gt;"
                                  : c == '\'' ? "&#39;"
                                  : c == '"'  ? "&#34;"
                                              : "";
    if (name.empty()) continue;
    out += s.substr(kept, i - kept);
    out += name;
    kept = i + 1;
  }
  out += s.substr(kept);
  return in.string(out);
}

Value string(Interpreter& in, const Value& v, const Args& args) {
  takes_none("string", args);
  return Value::of(str_view(in, v));
}

Value trim(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("trim", args, {"chars"});
  Args chars;
  if (a[0]) chars.positional.push_back(*a[0]);
  return text_method(in, v, "strip", chars);
}

Value replace(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("replace", args, {"old", "new", "count"}, 2);
  Args m;
  m.positional = {Value::of(str_view(in, *a[0])), Value::of(str_view(in, *a[1]))};
  if (a[2] && !a[2]->is(Type::none)) m.positional.push_back(*a[2]);
  return text_method(in, v, "replace", m);
}

Value center(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("center", args, {"width"});
  Args m;
  m.positional = {a.value(0, Value::of(int64_t{80}))};
  return text_method(in, v, "center", m);
}

Value format(Interpreter& in, const Value& v, const Args& args) {
  if (!args.positional.empty() && !args.named.empty())
    throw Fault("format takes positional or named arguments, not both");
  if (!args.named.empty()) {
    Dict* d = in.new_dict();
    for (const auto& [name, value] : args.named) set_key(in, *d, in.string(name), value);
    return in.string(percent_format(in, str_view(in, v), Value::of(d)));
  }
  List* list = in.new_list();
  list->items.assign(args.positional.begin(), args.positional.end());
  return in.string(percent_format(in, str_view(in, v), Value::tuple(list)));
}

Value indent(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("indent", args, {"width", "first", "blank"});
  if (v.is_undefined()) undefined_used(v);
  if (!v.is_string()) throw Fault(fmt::format("indent needs a string, not '{}'", type_name(v)));
  std::string spaces(4, ' ');
  std::string_view by = spaces;
  if (a[0]) {
    if (a[0]->is_string()) {
      by = a[0]->str();
    } else {
      const int64_t n = index_of(*a[0], "the width");
      if (n > 10'000) throw Fault(fmt::format("an indent of {} is too large", n));
      spaces.assign(static_cast<size_t>(std::max<int64_t>(n, 0)), ' ');
      by = spaces;
    }
  }
  const bool first = a[1] && truth(*a[1]), blank = a[2] && truth(*a[2]);
  // A newline is added so that a last line break makes a last, empty line.
  const Value text = arithmetic(in, Op::add, v, Value::of(std::string_view("\n")));
  const Value lines = find_method(text, "splitlines")(in, text, {});
  Text out = in.text();
  for (size_t i = 0; i < lines.list->items.size(); ++i) {
    const std::string_view line = lines.list->items[i].str();
    if (out.size() + line.size() + by.size() > in.bytes_max())
      throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
    if (i > 0) out += '\n';
    if (i == 0 ? first : blank || !line.empty()) out += by;
    out += line;
  }
  return in.string(out);
}

Value truncate(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("truncate", args, {"length", "killwords", "end", "leeway"});
  if (!v.is_string()) throw Fault(fmt::format("truncate needs a string, not '{}'", type_name(v)));
  const int64_t length = a[0] ? index_of(*a[0], "length") : 255;
  const std::string_view end = a[2] ? str_view(in, *a[2]) : "...";
  const int64_t leeway = a[3] && !a[3]->is(Type::none) ? index_of(*a[3], "leeway") : 5;
  const auto end_points = static_cast<int64_t>(count_points(end));
  if (length < end_points || leeway < 0)
    throw Fault("truncate: the length is below that of its end, or leeway is negative");
  if (*length_of(in, v) <= (length > INT64_MAX - leeway ? INT64_MAX : length + leeway)) return v;
  std::string_view s = v.str().substr(0, byte_of_point(v.str(), static_cast<size_t>(length - end_points)));
  if (!(a[1] && truth(*a[1])))
    if (const size_t space = s.rfind(' '); space != std::string_view::npos) s = s.substr(0, space);
  Text out = in.text();
  out += s;
  out += end;
  return in.string(out);
}

Value wordcount(Interpreter& in, const Value& v, const Args& args) {
  takes_none("wordcount", args);
  const std::string_view s = str_view(in, v);
  charge(in, s);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < s.size();) {
    const char32_t c = next_point(s, i);
    const bool word = is_alpha(c) || is_digit(c) || c == '_';
    words += word && !inside;
    inside = word;
  }
  return Value::of(words);
}

Value urlencode(Interpreter& in, const Value& v, const Args& args) {
  takes_none("urlencode", args);
  const auto quote = [&](std::string& out, std::string_view s, bool query) {
    charge(in, s);
    for (const char c : s) {
      const bool plain = ascii::is_alnum(c) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query);
      if (plain) out += c;
      else if (query && c == ' ') out += '+';
      else out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  };
  std::string out;
  if (v.is_string() || !(v.is(Type::dict) || v.is_sequence())) {
    quote(out, str_view(in, v), false);
    return in.string(out);
  }
  Iterator* it = v.is(Type::dict) ? in.iterate(dict_items(in, v)) : in.iterate(v);
  for (Value pair; it->next(in, pair);) {
    const List* two = in.to_list(pair);
    if (two->items.size() != 2) throw Fault("urlencode needs pairs");
    if (!out.empty()) out += '&';
    quote(out, str_view(in, two->items[0]), true);
    out += '=';
    quote(out, str_view(in, two->items[1]), true);
  }
  return in.string(out);
}

// ---- numbers ----

// Digits with single underscores between them, without them; empty when malformed.
std::string plain_digits(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      out += s[i];
      continue;
    }
    const auto alnum = [&](size_t k) { return k < s.size() && std::isalnum(static_cast<unsigned char>(s[k])); };
    if (i == 0 || !alnum(i - 1) || !alnum(i + 1)) return {};
  }
  return out;
}

std::optional<int64_t> parse_int(std::string_view s, int64_t base) {
  s = strip_space(s, Side::both);
  bool negative = false;
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) negative = s[0] == '-', s.remove_prefix(1);
  if (s.size() > 2 && s[0] == '0') {
    const char c = static_cast<char>(s[1] | 0x20);
    const int64_t named = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) base = named, s.remove_prefix(s[2] == '_' ? 3 : 2);
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) throw Fault(fmt::format("int: base {} is not 0 or 2 to 36", base));
  const std::string digits = plain_digits(s);
  if (digits.empty() || !std::isalnum(static_cast<unsigned char>(digits[0]))) return std::nullopt;
  uint64_t v = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), v, static_cast<int>(base));
  if (end != digits.data() + digits.size() && ec == std::errc()) return std::nullopt;
  if (ec == std::errc::result_out_of_range || v > static_cast<uint64_t>(INT64_MAX))
    throw Fault("an integer does not fit 64 bits");
  if (ec != std::errc()) return std::nullopt;
  return negative ? -static_cast<int64_t>(v) : static_cast<int64_t>(v);
}

std::optional<double> parse_float(std::string_view s) {
  s = strip_space(s, Side::both);
  const std::string text = plain_digits(s);
  if (text.empty()) return std::nullopt;
  std::string_view rest = text;
  if (rest[0] == '-' || rest[0] == '+') rest.remove_prefix(1);
  const std::string word = to_lower(rest);
  const bool special = word == "inf" || word == "infinity" || word == "nan";
  if (!special) {
    if (rest.empty() || rest.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  }
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) return std::nullopt;
  return v;
}

std::optional<int64_t> truncated(double v) {
  if (!std::isfinite(v)) return std::nullopt;
  if (std::fabs(v) >= 9.2e18) throw Fault("an integer does not fit 64 bits");
  return static_cast<int64_t>(v);
}

Value to_int(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("int", args, {"default", "base"});
  const Value otherwise = a.value(0, Value::of(int64_t{0}));
  if (v.is_undefined()) undefined_used(v);
  if (v.is_int()) return Value::of(v.as_int());
  std::optional<int64_t> n;
  if (v.is(Type::floating)) {
    n = truncated(v.floating);
  } else if (v.is_string()) {
    charge(in, v.str());
    n = parse_int(v.str(), a[1] ? index_of(*a[1], "base") : 10);
    if (!n)
      if (const auto d = parse_float(v.str())) n = truncated(*d);
  }
  return n ? Value::of(*n) : otherwise;
}

Value to_float(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("float", args, {"default"});
  if (v.is_undefined()) undefined_used(v);
  if (v.is_number()) return Value::of(v.as_double());
  if (v.is_string()) {
    charge(in, v.str());
    if (const auto d = parse_float(v.str())) return Value::of(*d);
  }
  return a.value(0, Value::of(0.0));
}

Value absolute(Interpreter&, const Value& v, const Args& args) {
  takes_none("abs", args);
  if (v.is_int()) return v.as_int() < 0 ? negated(v) : Value::of(v.as_int());
  if (v.is(Type::floating)) return Value::of(std::fabs(v.floating));
  if (v.is_undefined()) undefined_used(v);
  throw Fault(fmt::format("abs needs a number, not '{}'", type_name(v)));
}

// Half to even at a power of ten, on the exact decimal expansion of the double.
double round_to(double v, int64_t digits) {
  if (!std::isfinite(v) || digits > 300) return v;
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", v, static_cast<int>(digits)).c_str(), nullptr);
  if (digits < -308) return std::copysign(0.0, v);
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(v / scale) * scale;
}

Value round(Interpreter&, const Value& v, const Args& args) {
  const auto a = bind("round", args, {"precision", "method"});
  const int64_t digits = a[0] ? index_of(*a[0], "precision") : 0;
  const std::string_view method = a[1] && a[1]->is_string() ? a[1]->str() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    throw Fault("round: the method must be common, ceil or floor");
  if (v.is_undefined()) undefined_used(v);
  if (!v.is_number()) throw Fault(fmt::format("round needs a number, not '{}'", type_name(v)));
  if (method == "common") {
    if (!v.is_int()) return Value::of(round_to(v.floating, digits));
    if (digits >= 0) return Value::of(v.as_int());
    if (digits < -18) return Value::of(int64_t{0});
    int64_t scale = 1;
    for (int64_t i = 0; i < -digits; ++i) scale *= 10;
    const int64_t n = v.as_int(), rest = ((n % scale) + scale) % scale, low = n - rest;
    const bool up = rest > scale - rest || (rest == scale - rest && (low / scale) % 2 != 0);
    int64_t high = 0;
    if (up && __builtin_add_overflow(low, scale, &high)) throw Fault("an integer does not fit 64 bits");
    return Value::of(up ? high : low);
  }
  if (digits < -300 || digits > 300) throw Fault(fmt::format("round: precision {} is out of range", digits));
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = v.as_double() * scale;
  if (!std::isfinite(scaled)) throw Fault("round: the number is out of range");
  return Value::of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value default_value(Interpreter&, const Value& v, const Args& args) {
  const auto a = bind("default", args, {"default_value", "boolean"});
  if (v.is_undefined() || (a[1] && truth(*a[1]) && !truth(v))) return a.value(0, Value::of(std::string_view("")));
  return v;
}

Value attr(Interpreter& in, const Value& v, const Args& args) {
  const auto a = bind("attr", args, {"name"}, 1);
  if (!a[0]->is_string()) throw Fault("attr needs a name");
  if (v.is(Type::dict) && !find_method(v, a[0]->str()) && !a[0]->str().starts_with("__"))
    return Value::undefined(a[0]->str(), Absence::attribute);
  return in.attribute(v, a[0]->str());
}

struct Row {
  std::string_view name;
  FilterFn fn;
};

constexpr Row kFilters[] = {
    {"abs", absolute},
    {"attr", attr},
    {"batch", sequence_filters::batch},
    {"capitalize", cased<capitalized>},
    {"center", center},
    {"count", sequence_filters::length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", sequence_filters::dictsort},
    {"e", escape},
    {"escape", escape},
    {"first", sequence_filters::first},
    {"float", to_float},
    {"forceescape", escape},
    {"format", format},
    {"groupby", sequence_filters::groupby},
    {"indent", indent},
    {"int", to_int},
    {"items", sequence_filters::items},
    {"join", sequence_filters::join},
    {"last", sequence_filters::last},
    {"length", sequence_filters::length},
    {"list", sequence_filters::list},
    {"lower", cased<to_lower>},
    {"map", sequence_filters::map},
    {"max", sequence_filters::max},
    {"min", sequence_filters::min},
    {"reject", sequence_filters::reject},
    {"rejectattr", sequence_filters::rejectattr},
    {"replace", replace},
    {"reverse", sequence_filters::reverse},
    {"round", round},
    {"safe", string},
    {"select", sequence_filters::select},
    {"selectattr", sequence_filters::selectattr},
    {"slice", sequence_filters::slices},
    {"sort", sequence_filters::sort},
    {"string", string},
    {"sum", sequence_filters::sum},
    {"title", cased<title_words>},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"unique", sequence_filters::unique},
    {"upper", cased<to_upper>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
};

}  // namespace

FilterFn find_filter(std::string_view name) {
  const auto* row = std::lower_bound(std::begin(kFilters), std::end(kFilters), name,
                                     [](const Row& r, std::string_view n) { return r.name < n; });
  return row != std::end(kFilters) && row->name == name ? row->fn : nullptr;
}

}  // namespace hearth::text::jinja
