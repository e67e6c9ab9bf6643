#include "text/template/formatting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {
namespace {

void bounded(Interpreter& in, const Text& out) {
  if (out.size() > in.bytes_max())
    throw Fault(fmt::format("a string is beyond {} bytes", in.bytes_max()), kOutputLimit);
}

// Appends s, with what escape(code point) gives in place of every character that it gives something for.
template <class Escape>
void append_escaped(Text& out, std::string_view s, Escape&& escape) {
  size_t kept = 0;
  for (size_t i = 0; i < s.size();) {
    const size_t begin = i;
    const std::string escaped = escape(next_point(s, i));
    if (escaped.empty()) continue;
    out += s.substr(kept, begin - kept);
    out += escaped;
    kept = i;
  }
  out += s.substr(kept);
}

void append_quoted(Interpreter& in, Text& out, std::string_view s) {
  in.spend(static_cast<int64_t>(s.size() / 64));
  const char quote = s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  append_escaped(out, s, [&](char32_t c) -> std::string {
    const auto code = static_cast<uint32_t>(c);
    if (c == static_cast<char32_t>(quote) || c == '\\') return {'\\', static_cast<char>(c)};
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (c < 0x20 || c == 0x7F) return fmt::format("\\x{:02x}", code);
    if (c < 0x7F || is_printable(c)) return {};
    if (c < 0x100) return fmt::format("\\x{:02x}", code);
    return c < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
  });
  out += quote;
}

void append_items(Interpreter& in, Text& out, const std::pmr::vector<Value>& items) {
  bool first = true;
  for (const Value& v : items) {
    if (!first) out += ", ";
    first = false;
    append_repr(in, out, v);
  }
}

void append_dict(Interpreter& in, Text& out, const Dict& d) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : d.entries) {
    if (!first) out += ", ";
    first = false;
    append_repr(in, out, key);
    out += ": ";
    append_repr(in, out, value);
  }
  out += '}';
}

void append_view(Interpreter& in, Text& out, const DictView& view) {
  out += type_name(Value::of(const_cast<DictView*>(&view)));
  out += "([";
  bool first = true;
  for (const auto& [key, value] : view.dict->entries) {
    if (!first) out += ", ";
    first = false;
    if (view.what == DictView::What::items) out += '(';
    if (view.what != DictView::What::values) append_repr(in, out, key);
    if (view.what == DictView::What::items) out += ", ";
    if (view.what != DictView::What::keys) append_repr(in, out, value);
    if (view.what == DictView::What::items) out += ')';
  }
  out += "])";
}

void append_json_string(Interpreter& in, Text& out, std::string_view s, bool ascii) {
  in.spend(static_cast<int64_t>(s.size() / 64));
  out += '"';
  append_escaped(out, s, [&](char32_t c) -> std::string {
    switch (c) {
      case '"': return "\\\"";
      case '\\': return "\\\\";
      case '\n': return "\\n";
      case '\r': return "\\r";
      case '\t': return "\\t";
      case '\b': return "\\b";
      case '\f': return "\\f";
      default: break;
    }
    const auto code = static_cast<uint32_t>(c);
    if (c < 0x20 || (ascii && c >= 0x7F && c < 0x10000)) return fmt::format("\\u{:04x}", code);
    if (!ascii || c < 0x10000) return {};
    const uint32_t v = code - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 | (v >> 10), 0xDC00 | (v & 0x3FF));
  });
  out += '"';
}

std::string json_float(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  return float_repr(v);
}

class JsonWriter {
 public:
  JsonWriter(Interpreter& in, const JsonStyle& style, Text& out) : in_(in), style_(style), out_(out) {}

  void write(const Value& v, int level) {
    const Interpreter::Depth depth(in_);
    in_.spend(1);
    bounded(in_, out_);
    switch (v.type) {
      case Type::none: out_ += "null"; return;
      case Type::boolean: out_ += v.boolean ? "true" : "false"; return;
      case Type::integer: out_ += std::to_string(v.integer); return;
      case Type::floating: out_ += json_float(v.floating); return;
      case Type::string: append_json_string(in_, out_, v.str(), style_.ascii); return;
      case Type::list:
      case Type::tuple: return write_list(v.list->items, level);
      case Type::dict: return write_dict(*v.dict, level);
      case Type::undefined:
      case Type::object: break;
    }
    throw Fault(fmt::format("a value of type {} cannot be written as JSON", type_name(v)));
  }

 private:
  void line(int level) {
    if (!style_.lines) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += style_.indent;
    bounded(in_, out_);
  }

  void write_list(const std::pmr::vector<Value>& items, int level) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line(level + 1);
      write(items[i], level + 1);
    }
    if (!items.empty()) line(level);
    out_ += ']';
  }

  void write_key(const Value& key) {
    switch (key.type) {
      case Type::string: return append_json_string(in_, out_, key.str(), style_.ascii);
      case Type::none: out_ += "\"null\""; return;
      case Type::boolean: out_ += key.boolean ? "\"true\"" : "\"false\""; return;
      case Type::integer: out_ += '"' + std::to_string(key.integer) + '"'; return;
      case Type::floating: out_ += '"' + json_float(key.floating) + '"'; return;
      default: throw Fault(fmt::format("a JSON key cannot be a {}", type_name(key)));
    }
  }

  void write_dict(const Dict& d, int level) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& e : d.entries) entries.push_back(&e);
    if (style_.sort_keys)
      merge_sort(entries, [&](const auto* a, const auto* b) { return less(in_, a->first, b->first); });
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line(level + 1);
      write_key(entries[i]->first);
      out_ += style_.key_separator;
      write(entries[i]->second, level + 1);
    }
    if (!entries.empty()) line(level);
    out_ += '}';
  }

  Interpreter& in_;
  const JsonStyle& style_;
  Text& out_;
};

}  // namespace

std::string float_repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific).ptr;
  std::string_view s(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (s[0] == '-') out = "-", s.remove_prefix(1);
  const size_t e = s.find('e');
  std::string digits(s.substr(0, 1));
  if (e > 2) digits += s.substr(2, e - 2);
  const int exponent = std::atoi(std::string(s.substr(e + 1)).c_str());
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n > 1) out += '.' + digits.substr(1);
    return out + fmt::format("e{}{:02d}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (exponent + 1 >= n) return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent + 1)) + '.' +
         digits.substr(static_cast<size_t>(exponent + 1));
}

void append_repr(Interpreter& in, Text& out, const Value& v) {
  const Interpreter::Depth depth(in);
  in.spend(1);
  bounded(in, out);
  switch (v.type) {
    case Type::undefined: out += "Undefined"; return;
    case Type::none: out += "None"; return;
    case Type::boolean: out += v.boolean ? "True" : "False"; return;
    case Type::integer: out += std::to_string(v.integer); return;
    case Type::floating: out += float_repr(v.floating); return;
    case Type::string: return append_quoted(in, out, v.str());
    case Type::list:
      out += '[';
      append_items(in, out, v.list->items);
      out += ']';
      return;
    case Type::tuple:
      out += '(';
      append_items(in, out, v.list->items);
      if (v.list->items.size() == 1) out += ',';
      out += ')';
      return;
    case Type::dict: return append_dict(in, out, *v.dict);
    case Type::object: break;
  }
  switch (v.object->kind) {
    case ObjectKind::range: {
      const auto& r = *static_cast<const Range*>(v.object);
      out += fmt::format("range({}, {}", r.start, r.start + r.step * r.size);
      out += r.step == 1 ? ")" : fmt::format(", {})", r.step);
      return;
    }
    case ObjectKind::view: return append_view(in, out, *static_cast<const DictView*>(v.object));
    case ObjectKind::name_space:
      out += "<Namespace ";
      append_dict(in, out, *static_cast<const Namespace*>(v.object)->attributes);
      out += '>';
      return;
    case ObjectKind::macro: out += fmt::format("<Macro '{}'>", static_cast<const Macro*>(v.object)->def->name); return;
    case ObjectKind::loop: {
      auto& loop = *static_cast<Loop*>(v.object);
      out += fmt::format("<LoopContext {}/{}>", loop.index0 + 1, in.loop_length(loop));
      return;
    }
    default: out += fmt::format("<{} object>", type_name(v));
  }
}

void append_str(Interpreter& in, Text& out, const Value& v) {
  if (v.is_string()) {
    in.spend(static_cast<int64_t>(v.length / 256));
    out += v.str();
    bounded(in, out);
  } else if (!v.is_undefined()) {
    append_repr(in, out, v);
  }
}

Text to_str(Interpreter& in, const Value& v) {
  Text s = in.text();
  append_str(in, s, v);
  return s;
}

std::string_view str_view(Interpreter& in, const Value& v) {
  if (v.is_string()) return v.str();
  return in.string(to_str(in, v)).str();
}

Text to_json(Interpreter& in, const Value& v, const JsonStyle& style) {
  Text out = in.text();
  JsonWriter(in, style, out).write(v, 0);
  return out;
}

}  // namespace hearth::text::jinja
