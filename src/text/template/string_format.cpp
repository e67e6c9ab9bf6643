// "..." % values and str.format, with Python's format specifications.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "text/template/formatting.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {
namespace {

void bounded(Interpreter& in, const Text& out) {
  if (out.size() > in.bytes_max())
    throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
}

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = 0;   // + - space
  bool alternate = false, comma = false;
  int64_t width = 0, precision = -1;
  char type = 0;
};

int64_t spec_number(std::string_view s, size_t& i) {
  int64_t v = 0;
  for (; i < s.size() && s[i] >= '0' && s[i] <= '9'; ++i) {
    v = v * 10 + (s[i] - '0');
    if (v > 100'000'000) throw Fault("a width or precision is too large");
  }
  return v;
}

Spec parse_spec(std::string_view s) {
  Spec spec;
  size_t i = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!s.empty()) {
    size_t next = 0;
    next_point(s, next);
    if (next < s.size() && is_align(s[next])) {
      spec.fill = s.substr(0, next);
      spec.align = s[next];
      i = next + 1;
    } else if (is_align(s[0])) {
      spec.align = s[0];
      i = 1;
    }
  }
  if (i < s.size() && (s[i] == '+' || s[i] == '-' || s[i] == ' ')) spec.sign = s[i++];
  if (i < s.size() && s[i] == '#') spec.alternate = true, ++i;
  if (i < s.size() && s[i] == '0') {
    if (spec.align == 0) spec.fill = "0", spec.align = '=';
    ++i;
  }
  spec.width = spec_number(s, i);
  if (i < s.size() && s[i] == ',') spec.comma = true, ++i;
  if (i < s.size() && s[i] == '.') {
    const size_t first = ++i;
    spec.precision = spec_number(s, i);
    if (i == first) throw Fault("a format specification lacks its precision");
  }
  if (i < s.size()) spec.type = s[i++];
  if (i != s.size()) throw Fault(fmt::format("invalid format specification '{}'", s.substr(0, 60)));
  return spec;
}

Text padded(Interpreter& in, const Spec& spec, std::string_view sign, const Text& body, char default_align) {
  const auto points = static_cast<int64_t>(count_points(body.bytes()) + count_points(sign));
  const int64_t missing = std::max<int64_t>(spec.width - points, 0);
  if (missing > static_cast<int64_t>(in.bytes_max()))
    throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
  const char align = spec.align ? spec.align : default_align;
  const int64_t behind = align == '<' ? missing : align == '^' ? missing - missing / 2 : 0;
  Text out = in.text();
  const auto fill = [&](int64_t n) {
    std::string s;
    for (int64_t i = 0; i < n; ++i) s += spec.fill;
    out += s;
  };
  if (align != '=') fill(missing - behind);
  out += sign;
  if (align == '=') fill(missing);
  out += body;
  fill(behind);
  return out;
}

Text padded(Interpreter& in, const Spec& spec, std::string_view sign, std::string_view body, char default_align) {
  Text text = in.text();
  text += body;
  return padded(in, spec, sign, text, default_align);
}

std::string grouped(std::string digits) {
  const size_t end = std::min(digits.find('.'), digits.size());
  for (size_t i = end; i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string float_body(double magnitude, char type, int64_t precision, bool alternate) {
  if (std::isnan(magnitude)) return type == 'F' || type == 'E' || type == 'G' ? "NAN" : "nan";
  if (std::isinf(magnitude)) return type == 'F' || type == 'E' || type == 'G' ? "INF" : "inf";
  if (precision > 400) throw Fault(fmt::format("a precision of {} digits is too large", precision));
  const auto p = static_cast<int>(precision < 0 ? 6 : precision);
  switch (type) {
    case 'f':
    case 'F': return fmt::format(fmt::runtime(alternate ? "{:#.{}f}" : "{:.{}f}"), magnitude, p);
    case 'e': return fmt::format("{:.{}e}", magnitude, p);
    case 'E': return fmt::format("{:.{}E}", magnitude, p);
    case 'G': return fmt::format("{:.{}G}", magnitude, std::max(p, 1));
    case '%': return fmt::format("{:.{}f}%", magnitude * 100, p);
    default: return fmt::format(fmt::runtime(alternate ? "{:#.{}g}" : "{:.{}g}"), magnitude, std::max(p, 1));
  }
}

std::string sign_of(bool negative, char wish) { return negative ? "-" : wish == '+' ? "+" : wish == ' ' ? " " : ""; }

Text format_int(Interpreter& in, int64_t v, const Spec& spec) {
  const uint64_t magnitude = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  std::string body, prefix;
  switch (spec.type) {
    case 'x': body = fmt::format("{:x}", magnitude), prefix = "0x"; break;
    case 'X': body = fmt::format("{:X}", magnitude), prefix = "0X"; break;
    case 'o': body = fmt::format("{:o}", magnitude), prefix = "0o"; break;
    case 'b': body = fmt::format("{:b}", magnitude), prefix = "0b"; break;
    default: body = std::to_string(magnitude);
  }
  if (spec.comma) body = grouped(body);
  return padded(in, spec, sign_of(v < 0, spec.sign) + (spec.alternate ? prefix : ""), body, '>');
}

Text format_value(Interpreter& in, const Value& v, std::string_view text) {
  if (text.empty()) return to_str(in, v);
  const Spec spec = parse_spec(text);
  if (v.is_string()) {
    if ((spec.type != 0 && spec.type != 's') || spec.sign != 0 || spec.align == '=')
      throw Fault(fmt::format("format '{}' does not fit a string", text.substr(0, 60)));
    std::string_view s = v.str();
    if (spec.precision >= 0) s = s.substr(0, byte_of_point(s, static_cast<size_t>(spec.precision)));
    return padded(in, spec, "", s, '<');
  }
  const bool int_type =
      spec.type == 0 || (spec.type != '%' && std::string_view("dxXobn").find(spec.type) != std::string_view::npos);
  if (v.is_int() && int_type) {
    if (spec.precision >= 0) throw Fault("a precision is not allowed for integers");
    return format_int(in, v.as_int(), spec);
  }
  if (v.is_number() && (spec.type == 0 || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos)) {
    const double d = v.as_double();
    const bool negative = std::signbit(d) && !std::isnan(d);
    std::string body = spec.type == 0 && spec.precision < 0
                           ? float_repr(std::fabs(d))
                           : float_body(std::fabs(d), spec.type, spec.precision, spec.alternate);
    if (spec.type == 0 && spec.precision >= 0 && body.find_first_of(".en") == std::string::npos) body += ".0";
    if (spec.comma) body = grouped(body);
    return padded(in, spec, sign_of(negative, spec.sign), body, '>');
  }
  if (v.is_undefined()) undefined_used(v);
  throw Fault(fmt::format("format '{}' does not fit a {}", text.substr(0, 60), type_name(v)));
}

}  // namespace

Text percent_format(Interpreter& in, std::string_view format, const Value& args) {
  Text out = in.text();
  size_t used = 0;
  const bool is_tuple = args.is(Type::tuple);
  const auto next = [&]() -> Value {
    if (is_tuple ? used >= args.list->items.size() : used > 0)
      throw Fault("not enough arguments for the format string");
    return is_tuple ? args.list->items[used++] : (++used, args);
  };
  for (size_t i = 0; i < format.size();) {
    in.spend(1);
    bounded(in, out);
    const size_t mark = std::min(format.find('%', i), format.size());
    out += format.substr(i, mark - i);
    if (mark == format.size()) break;
    i = mark + 1;
    Spec spec;
    std::optional<Value> keyed;
    if (i < format.size() && format[i] == '(') {
      const size_t close = format.find(')', i);
      if (close == std::string_view::npos) throw Fault("a format key has no end");
      if (!args.is(Type::dict)) throw Fault("the format needs a mapping");
      const std::string_view key = format.substr(i + 1, close - i - 1);
      const Value* v = find_key(in, *args.dict, key);
      if (!v) throw Fault(fmt::format("the format's key '{}' is missing", key));
      keyed = *v;
      i = close + 1;
    }
    bool left = false, zero = false;
    for (; i < format.size(); ++i) {
      if (format[i] == '-') left = true;
      else if (format[i] == '0') zero = true;
      else if (format[i] == '+') spec.sign = '+';
      else if (format[i] == ' ') spec.sign = spec.sign ? spec.sign : ' ';
      else if (format[i] == '#') spec.alternate = true;
      else break;
    }
    const auto number = [&](int64_t& n) {
      if (i < format.size() && format[i] == '*') {
        ++i;
        n = index_of(next(), "a '*' width");
        if (n > 100'000'000) throw Fault("a width or precision is too large");
      } else {
        n = spec_number(format, i);
      }
    };
    number(spec.width);
    if (spec.width < 0) left = true, spec.width = -spec.width;
    if (i < format.size() && format[i] == '.') {
      ++i;
      number(spec.precision);
      spec.precision = std::max<int64_t>(spec.precision, 0);
    }
    if (i >= format.size()) throw Fault("the format string ends inside a field");
    const char type = format[i++];
    if (type == '%') {
      out += format.substr(i - 1, 1);
      continue;
    }
    const Value v = keyed ? *keyed : next();
    spec.align = left ? '<' : '>';
    switch (type) {
      case 's':
      case 'r':
      case 'a': {
        Text s = in.text();
        if (type == 's') append_str(in, s, v);
        else append_repr(in, s, v);
        if (spec.precision >= 0) s.resize(byte_of_point(s.bytes(), static_cast<size_t>(spec.precision)));
        out += padded(in, spec, "", s, '>');
        break;
      }
      case 'd':
      case 'i':
      case 'u': {
        if (v.is_undefined()) undefined_used(v);
        if (!v.is_number()) throw Fault(fmt::format("%{} needs a number, not '{}'", type, type_name(v)));
        if (v.is(Type::floating) && !(std::fabs(v.floating) < 9.2e18)) throw Fault("a float is too large for %d");
        const int64_t n = v.is_int() ? v.as_int() : static_cast<int64_t>(v.floating);
        const uint64_t magnitude = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
        std::string digits = std::to_string(magnitude);
        if (spec.precision > 400) throw Fault(fmt::format("a precision of {} digits is too large", spec.precision));
        if (static_cast<int64_t>(digits.size()) < spec.precision)
          digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
        if (zero && !left) spec.fill = "0", spec.align = '=';
        out += padded(in, spec, sign_of(n < 0, spec.sign), digits, '>');
        break;
      }
      case 'x':
      case 'X':
      case 'o': {
        if (!v.is_int()) throw Fault(fmt::format("%{} needs an integer, not '{}'", type, type_name(v)));
        if (zero && !left) spec.fill = "0", spec.align = '=';
        spec.type = type;
        out += format_int(in, v.as_int(), spec);
        break;
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        if (v.is_undefined()) undefined_used(v);
        if (!v.is_number()) throw Fault(fmt::format("%{} needs a number, not '{}'", type, type_name(v)));
        const double d = v.as_double();
        if (zero && !left) spec.fill = "0", spec.align = '=';
        const bool negative = std::signbit(d) && !std::isnan(d);
        out += padded(in, spec, sign_of(negative, spec.sign),
                      float_body(std::fabs(d), type, spec.precision, spec.alternate), '>');
        break;
      }
      case 'c': {
        if (v.is_string() && count_points(v.str()) == 1) {
          out += padded(in, spec, "", v.str(), '>');
        } else if (v.is_int() && v.as_int() >= 0 && v.as_int() < 0x110000 &&
                   (v.as_int() < 0xD800 || v.as_int() >= 0xE000)) {
          std::string s;
          append_utf8(s, static_cast<char32_t>(v.as_int()));
          out += padded(in, spec, "", s, '>');
        } else {
          throw Fault("%c needs a character");
        }
        break;
      }
      default: throw Fault(fmt::format("unsupported format character '{}'", type));
    }
  }
  // Python lets a lone argument that can be subscripted go unused.
  const bool subscripted = args.is(Type::dict) || args.is(Type::list) || args.is_undefined() ||
                           (args.is(Type::object) && args.object->kind == ObjectKind::range);
  if (is_tuple ? used < args.list->items.size() : used == 0 && !subscripted)
    throw Fault("not all arguments of the format string are used");
  bounded(in, out);
  return out;
}

Text brace_format(Interpreter& in, std::string_view format, const Args& args) {
  Text out = in.text();
  size_t automatic = 0;
  bool manual = false;
  for (size_t i = 0; i < format.size();) {
    in.spend(1);
    bounded(in, out);
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out += format.substr(i, 1);
      i += 2;
      continue;
    }
    if (c == '}') throw Fault("a single '}' stands in the format string");
    if (c != '{') {
      const size_t end = std::min(format.find_first_of("{}", i), format.size());
      out += format.substr(i, end - i);
      i = end;
      continue;
    }
    const size_t close = format.find('}', i);
    if (close == std::string_view::npos) throw Fault("a '{' in the format string has no end");
    std::string_view field = format.substr(i + 1, close - i - 1);
    if (field.find('{') != std::string_view::npos) throw Fault("nested format fields are not supported");
    i = close + 1;
    std::string_view spec;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (const size_t mark = field.find('!'); mark != std::string_view::npos) {
      if (field.size() != mark + 2 || (field[mark + 1] != 's' && field[mark + 1] != 'r'))
        throw Fault("unknown conversion in the format string");
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    const size_t head_end = std::min(field.find_first_of(".["), field.size());
    const std::string_view head = field.substr(0, head_end);
    Value v;
    const bool is_number =
        !head.empty() && std::all_of(head.begin(), head.end(), [](char d) { return d >= '0' && d <= '9'; });
    if (head.empty() || is_number) {
      size_t at = 0;
      if (is_number) at = static_cast<size_t>(spec_number(head, at));
      else at = automatic++;
      manual |= is_number;
      if (manual && automatic > 0) throw Fault("the format mixes numbered and unnumbered fields");
      if (at >= args.positional.size())
        throw Fault(fmt::format("the format needs argument {}, {} given", at, args.positional.size()));
      v = args.positional[at];
    } else {
      const auto it =
          std::find_if(args.named.begin(), args.named.end(), [&](const auto& a) { return a.first == head; });
      if (it == args.named.end()) throw Fault(fmt::format("the format's key '{}' is missing", head));
      v = it->second;
    }
    for (size_t k = head_end; k < field.size();) {
      if (field[k] == '.') {
        const size_t end = std::min(field.find_first_of(".[", k + 1), field.size());
        v = in.attribute(v, field.substr(k + 1, end - k - 1));
        k = end;
      } else {
        const size_t end = field.find(']', k);
        if (end == std::string_view::npos) throw Fault("a '[' in the format string has no end");
        const std::string_view key = field.substr(k + 1, end - k - 1);
        const bool digits =
            !key.empty() && std::all_of(key.begin(), key.end(), [](char d) { return d >= '0' && d <= '9'; });
        size_t at = 0;
        v = in.item(v, digits ? Value::of(spec_number(key, at)) : Value::of(key));
        k = end + 1;
      }
    }
    if (conversion == 'r') {
      Text s = in.text();
      append_repr(in, s, v);
      v = in.string(s);
    } else if (conversion == 's') {
      v = in.string(to_str(in, v));
    }
    out += format_value(in, v, spec);
  }
  bounded(in, out);
  return out;
}

}  // namespace hearth::text::jinja
