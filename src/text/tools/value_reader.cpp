#include "text/tools/value_reader.h"

#include <charconv>

#include "base/utf8.h"

namespace hearth::text::tools {
namespace {

constexpr std::string_view kMark = "<|\"|>";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr size_t kBareKeyMax = 256;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_token_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.';
}

}  // namespace

bool is_number(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i > start;
  };
  if (i < text.size() && text[i] == '-') ++i;
  const size_t whole = i;
  if (!digits() || (text[whole] == '0' && i - whole > 1)) return false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!digits()) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) return false;
  }
  double value = 0;
  return i == text.size() && std::from_chars(text.data(), text.data() + i, value).ec == std::errc();
}

Step ValueReader::push(char c) {
  switch (state_) {
    case State::first_value:
      if (c == ']') return close();
      [[fallthrough]];
    case State::value:
      if (is_blank(c)) return Step::more;
      return begin_value(c);
    case State::first_key:
      if (c == '}') return close();
      [[fallthrough]];
    case State::key:
      if (is_blank(c)) return Step::more;
      return begin_key(c);
    case State::bare_key:
      if (c == ':') {
        key_ = without_blanks(key_);
        const Step step = end_key();
        if (state_ == State::colon) state_ = State::value;
        return step;
      }
      if (key_.size() >= kBareKeyMax || std::string_view("{}[],\"<>\n").find(c) != std::string_view::npos)
        return Step::failed;
      key_ += c;
      return Step::more;
    case State::mark:
      if (c != kMark[matched_]) return Step::failed;
      if (++matched_ < kMark.size()) return Step::more;
      return begin_string('<');
    case State::colon:
      if (is_blank(c)) return Step::more;
      if (c != ':') return Step::failed;
      state_ = State::value;
      return Step::more;
    case State::after:
      if (is_blank(c)) return Step::more;
      if (c == (writer_->in_object() ? '}' : ']')) return close();
      if (c != ',') return Step::failed;
      state_ = writer_->in_object() ? State::key : State::value;
      return Step::more;
    case State::string: return string_byte(c);
    case State::escape: return escaped(c);
    case State::unicode: return hex_digit(c);
    case State::token:
      if (is_token_byte(c)) {
        token_ += c;
        return Step::more;
      }
      if (const Step step = end_token(); step != Step::more) return step == Step::done ? Step::before : step;
      return push(c);
    case State::bare_string:
      if (c == '{' || c == '[' || c == ']' || c == '<' || c == '\n') return Step::failed;
      if (c != ',' && c != '}') {
        token_ += c;
        return Step::more;
      }
      if (const Step step = end_token(); step != Step::more) return step == Step::done ? Step::before : step;
      return push(c);
    case State::done: break;
  }
  return Step::failed;
}

Step ValueReader::finish() {
  if (state_ == State::token) return end_token() == Step::done ? Step::done : Step::failed;
  return state_ == State::done ? Step::done : Step::failed;
}

Step ValueReader::begin_value(char c) {
  in_key_ = false;
  if (c == '{' || c == '[') {
    if (!(c == '{' ? writer_->begin_object() : writer_->begin_array())) return Step::failed;
    state_ = c == '{' ? State::first_key : State::first_value;
    rule_ = StringRule::no;
    return Step::more;
  }
  if (c == '"' || (c == '\'' && syntax_ == Syntax::python)) return begin_string(c);
  if (c == '<' && syntax_ == Syntax::gemma) {
    matched_ = 1;
    state_ = State::mark;
    return Step::more;
  }
  const bool bare = rule_ != StringRule::no;
  if (!bare && !is_token_byte(c)) return Step::failed;
  token_ = c;
  state_ = bare ? State::bare_string : State::token;
  if (bare && (c == ',' || c == '}' || c == ']')) return Step::failed;
  return Step::more;
}

Step ValueReader::begin_key(char c) {
  in_key_ = true;
  key_.clear();
  if (c == '"' || (c == '\'' && syntax_ == Syntax::python)) return begin_string(c);
  if (syntax_ != Syntax::gemma) return Step::failed;
  if (c == '<') {
    matched_ = 1;
    state_ = State::mark;
    return Step::more;
  }
  state_ = State::bare_key;
  return c == ':' ? Step::failed : push(c);
}

Step ValueReader::begin_string(char quote) {
  quote_ = quote;
  matched_ = 0;
  high_ = 0;
  state_ = State::string;
  if (!in_key_) writer_->begin_string();
  return Step::more;
}

Step ValueReader::string_byte(char c) {
  if (quote_ == '<') {
    if (c == kMark[matched_]) {
      if (++matched_ == kMark.size()) return end_string();
      return Step::more;
    }
    put(kMark.substr(0, matched_));
    matched_ = c == '<' ? 1 : 0;
    if (matched_ == 0) put({&c, 1});
    return Step::more;
  }
  if (c == quote_) return end_string();
  if (c == '\\') {
    state_ = State::escape;
    return Step::more;
  }
  drop_surrogate();
  put({&c, 1});
  return Step::more;
}

Step ValueReader::escaped(char c) {
  state_ = State::string;
  if (c == 'u') {
    state_ = State::unicode;
    unit_ = 0;
    digits_ = 0;
    return Step::more;
  }
  static constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  size_t at = kNames.find(c);
  if (c == '\'' && syntax_ == Syntax::python) at = kNames.size();
  if (at == std::string_view::npos) return Step::failed;
  drop_surrogate();
  put(at < kMeant.size() ? kMeant.substr(at, 1) : std::string_view("'"));
  return Step::more;
}

Step ValueReader::hex_digit(char c) {
  unit_ <<= 4;
  if (is_digit(c)) unit_ += static_cast<uint32_t>(c - '0');
  else if (c >= 'a' && c <= 'f') unit_ += static_cast<uint32_t>(c - 'a' + 10);
  else if (c >= 'A' && c <= 'F') unit_ += static_cast<uint32_t>(c - 'A' + 10);
  else return Step::failed;
  if (++digits_ < 4) return Step::more;
  state_ = State::string;
  if (unit_ >= 0xdc00 && unit_ < 0xe000) {
    put_point(high_ ? 0x10000 + ((high_ - 0xd800) << 10) + (unit_ - 0xdc00) : 0xfffd);
    high_ = 0;
    return Step::more;
  }
  drop_surrogate();
  if (unit_ >= 0xd800 && unit_ < 0xdc00) high_ = unit_;
  else put_point(unit_);
  return Step::more;
}

void ValueReader::drop_surrogate() {
  if (high_) put(kReplacement);
  high_ = 0;
}

void ValueReader::put_point(uint32_t point) {
  std::string bytes;
  append_utf8(bytes, point);
  put(bytes);
}

void ValueReader::put(std::string_view bytes) {
  if (in_key_) key_ += bytes;
  else writer_->text(bytes);
}

Step ValueReader::end_string() {
  drop_surrogate();
  if (in_key_) return end_key();
  writer_->end_string();
  return end_value();
}

Step ValueReader::end_key() {
  if (!writer_->key(key_)) return Step::failed;
  rule_ = tool_ && writer_->depth() == 1 ? string_rule(tool_->parameters, key_) : StringRule::no;
  state_ = State::colon;
  return Step::more;
}

Step ValueReader::end_token() {
  const std::string_view token = without_blanks(token_);
  if (state_ == State::bare_string && !(token == "null" && rule_ == StringRule::nullable)) {
    writer_->begin_string();
    writer_->text(token);
    writer_->end_string();
    return end_value();
  }
  const bool python = syntax_ == Syntax::python;
  if (token == "true" || token == "false" || token == "null" || is_number(token)) writer_->literal(token);
  else if (python && token == "True") writer_->literal("true");
  else if (python && token == "False") writer_->literal("false");
  else if (python && token == "None") writer_->literal("null");
  else return Step::failed;
  return end_value();
}

Step ValueReader::close() {
  writer_->end();
  return end_value();
}

Step ValueReader::end_value() {
  state_ = writer_->depth() == 0 ? State::done : State::after;
  return state_ == State::done ? Step::done : Step::more;
}

}  // namespace hearth::text::tools
