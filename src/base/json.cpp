#include "base/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/too_deep.h"
#include "base/utf8.h"

namespace hearth::json {

const Value* Object::find(std::string_view key) const {
  for (const Member& m : members)
    if (m.first == key) return &m.second;
  return nullptr;
}

Value& Object::operator[](std::string_view key) {
  for (Member& m : members)
    if (m.first == key) return m.second;
  return members.emplace_back(std::string(key), Value()).second;
}

bool Object::erase(std::string_view key) {
  return members.erase_if([&](const Member& m) { return m.first == key; }) > 0;
}

bool Object::operator==(const Object& other) const { return members == other.members; }
bool Value::operator==(const Value& other) const { return data_ == other.data_; }

std::string_view Value::type_name() const {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "a number", "a number",
                                                "a string", "an array",  "an object"};
  return kNames[data_.index()];
}

namespace {

[[noreturn]] void wrong_type(std::string_view what, std::string_view expected, const Value& found) {
  fail(ErrorKind::corrupt_file, "{}: expected {}, found {}", what, expected, found.type_name());
}

}  // namespace

bool Value::as_bool(std::string_view what) const {
  if (const bool* v = std::get_if<bool>(&data_)) return *v;
  wrong_type(what, "a boolean", *this);
}

int64_t Value::as_int(std::string_view what) const {
  if (const int64_t* v = std::get_if<int64_t>(&data_)) return *v;
  if (const double* v = std::get_if<double>(&data_))
    if (std::trunc(*v) == *v && std::fabs(*v) < 9.0e15) return static_cast<int64_t>(*v);
  wrong_type(what, "an integer", *this);
}

double Value::as_double(std::string_view what) const {
  if (const double* v = std::get_if<double>(&data_)) return *v;
  if (const int64_t* v = std::get_if<int64_t>(&data_)) return static_cast<double>(*v);
  wrong_type(what, "a number", *this);
}

const std::string& Value::as_string(std::string_view what) const {
  if (const std::string* v = string()) return *v;
  wrong_type(what, "a string", *this);
}

const Array& Value::as_array(std::string_view what) const {
  if (const Array* v = array()) return *v;
  wrong_type(what, "an array", *this);
}

const Object& Value::as_object(std::string_view what) const {
  if (const Object* v = object()) return *v;
  wrong_type(what, "an object", *this);
}

const Value* Value::get(std::string_view key) const {
  const Object* o = object();
  const Value* v = o ? o->find(key) : nullptr;
  return v && !v->is_null() ? v : nullptr;
}

namespace {

// Feeds a visitor from the parser's events. A string that arrives in parts is gathered in `text`, whose capacity never
// passes the document's size.
struct Handler {
  static constexpr size_t max_object_size = SIZE_MAX;
  static constexpr size_t max_array_size = SIZE_MAX;
  static constexpr size_t max_key_size = SIZE_MAX;
  static constexpr size_t max_string_size = SIZE_MAX;
  using Ec = boost::system::error_code;
  using View = boost::json::string_view;

  Visitor& visitor;
  size_t document_size;
  std::string text;

  Handler(Visitor& v, size_t size) : visitor(v), document_size(size) {}

  bool append(View s) {
    if (const size_t need = text.size() + s.size(); need > text.capacity() && 2 * text.capacity() > document_size) {
      std::string whole;
      whole.reserve(document_size);
      whole = text;
      text.swap(whole);
    }
    text.append(s.data(), s.size());
    return true;
  }
  std::string_view whole(View s) {
    if (text.empty()) return {s.data(), s.size()};
    append(s);
    return text;
  }

  bool on_document_begin(Ec&) { return true; }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec&) { return visitor.begin_object(), true; }
  bool on_object_end(size_t, Ec&) { return visitor.end_object(), true; }
  bool on_array_begin(Ec&) { return visitor.begin_array(), true; }
  bool on_array_end(size_t, Ec&) { return visitor.end_array(), true; }
  bool on_key_part(View s, size_t, Ec&) { return append(s); }
  bool on_key(View s, size_t, Ec&) { return visitor.key(whole(s)), text.clear(), true; }
  bool on_string_part(View s, size_t, Ec&) { return append(s); }
  bool on_string(View s, size_t, Ec&) { return visitor.string(whole(s)), text.clear(), true; }
  bool on_number_part(View, Ec&) { return true; }
  bool on_int64(int64_t v, View, Ec&) { return visitor.scalar(v), true; }
  bool on_uint64(uint64_t v, View, Ec&) {
    if (v <= static_cast<uint64_t>(INT64_MAX)) visitor.scalar(static_cast<int64_t>(v));
    else visitor.scalar(static_cast<double>(v));
    return true;
  }
  bool on_double(double v, View, Ec&) { return visitor.scalar(v), true; }
  bool on_bool(bool v, Ec&) { return visitor.scalar(v), true; }
  bool on_null(Ec&) { return visitor.scalar(nullptr), true; }
  bool on_comment_part(View, Ec&) { return true; }
  bool on_comment(View, Ec&) { return true; }
};

// Builds Values: open containers live on a stack of their own.
class Building : public Visitor {
 public:
  explicit Building(std::string_view what) : what_(what) {}

  void begin_object() override { stack_.push_back({Value(Object{}), {}}); }
  void end_object() override {
    require_unique_keys(*stack_.back().container.object());
    close();
  }
  void begin_array() override { stack_.push_back({Value(Array{}), {}}); }
  void end_array() override { close(); }
  void key(std::string_view name) override { stack_.back().key = name; }
  void string(std::string_view text) override { scalar(Value(text)); }
  void scalar(Value v) override {
    if (stack_.empty()) root = std::move(v);
    else if (Array* a = stack_.back().container.array()) a->push_back(std::move(v));
    else stack_.back().container.object()->members.emplace_back(std::move(stack_.back().key), std::move(v));
  }

  Value root;

 private:
  struct Open {
    Value container;
    std::string key;
  };

  void close() {
    Value v = std::move(stack_.back().container);
    stack_.pop_back();
    scalar(std::move(v));
  }

  // Sorted positions rather than a set: four bytes a member, less than its text.
  void require_unique_keys(const Object& object) {
    const auto& members = object.members;
    std::vector<uint32_t> order(members.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return members[a].first < members[b].first; });
    for (size_t i = 1; i < order.size(); ++i)
      if (const std::string& twice = members[order[i]].first; twice == members[order[i - 1]].first)
        fail(ErrorKind::corrupt_file, "{}: duplicate key \"{}\"", what_, twice.substr(0, 100));
  }

  std::string_view what_;
  std::vector<Open> stack_;
};

// Bytes that are no UTF-8 become U+FFFD each: what is written is JSON, whatever a file's names hold.
void dump_string(std::string& out, std::string_view s) {
  out += '"';
  for (size_t i = 0; i < s.size(); ++i) {
    if (static_cast<unsigned char>(s[i]) >= 0x80) {
      const size_t n = utf8_prefix(s.substr(i));
      out += n > 0 ? s.substr(i, n) : kReplacement;
      i += n > 0 ? n - 1 : 0;
      continue;
    }
    switch (const char c = s[i]) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", c);
        else out += c;
    }
  }
  out += '"';
}

void dump_number(std::string& out, double v) {
  if (!std::isfinite(v)) {
    out += "null";
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out.append(buffer, end);
  if (std::string_view(buffer, static_cast<size_t>(end - buffer)).find_first_of(".en") == std::string_view::npos)
    out += ".0";
}

void dump_to(std::string& out, const Value& value, int indent, int level) {
  const auto line = [&](int depth) {
    if (indent == 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
  };
  if (value.is_null()) out += "null";
  else if (value.is_bool()) out += value.as_bool("") ? "true" : "false";
  else if (value.is_int()) out += std::to_string(value.as_int(""));
  else if (value.is_double()) dump_number(out, value.as_double(""));
  else if (const std::string* s = value.string()) dump_string(out, *s);
  else if (const Array* a = value.array()) {
    out += '[';
    for (size_t i = 0; i < a->size(); ++i) {
      if (i > 0) out += indent ? "," : ", ";
      line(level + 1);
      dump_to(out, (*a)[i], indent, level + 1);
    }
    if (!a->empty()) line(level);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const Member& m : *value.object()) {
      if (!first) out += indent ? "," : ", ";
      first = false;
      line(level + 1);
      dump_string(out, m.first);
      out += ": ";
      dump_to(out, m.second, indent, level + 1);
    }
    if (!first) line(level);
    out += '}';
  }
}

}  // namespace

void visit(std::string_view text, std::string_view what, Visitor& visitor, const ParseLimits& limits) {
  if (text.size() > limits.bytes_max)
    fail(ErrorKind::corrupt_file, "{}: {} bytes of JSON, the limit is {}", what, text.size(), limits.bytes_max);
  boost::json::parse_options options;
  options.max_depth = static_cast<size_t>(limits.depth);
  boost::json::basic_parser<Handler> parser(options, visitor, text.size());
  boost::system::error_code ec;
  const size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) ec = boost::json::error::extra_data;
  if (ec == boost::json::error::too_deep)
    throw TooDeep(ErrorKind::corrupt_file,
                  fmt::format("{}: values are more than {} deep at byte {}", what, limits.depth, used));
  if (ec) fail(ErrorKind::corrupt_file, "{}: {} at byte {}", what, ec.message(), used);
}

Value parse(std::string_view text, std::string_view what, const ParseLimits& limits) {
  Building builder(what);
  visit(text, what, builder, limits);
  return std::move(builder.root);
}

std::string dump(const Value& value, const DumpOptions& options) {
  std::string out;
  dump_to(out, value, options.indent, 0);
  return out;
}

}  // namespace hearth::json
