#include "hub/toml.h"

#include <charconv>
#include <cmath>
#include <set>

#include "base/ascii.h"
#include "base/error.h"
#include "base/utf8.h"

namespace hearth::hub {
namespace {

bool is_bare(char c) { return ascii::is_alnum(c) || c == '_' || c == '-'; }

// One line of the file: every value of the subset ends on the line it begins on.
class LineParser {
 public:
  LineParser(std::string_view text, std::string_view what, int line) : text_(text), what_(what), line_(line) {}

  bool at_end() {
    skip_space();
    return at_ == text_.size() || text_[at_] == '#';
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, std::string_view where) {
    if (!accept(c)) bad(fmt::format("expected '{}' {}", c, where));
  }
  void expect_end() {
    if (!at_end()) bad(fmt::format("unexpected '{}' after the value", text_.substr(at_, 20)));
  }

  std::string key() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return string();
    const size_t begin = at_;
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    if (at_ == begin) bad("expected a name (letters, digits, '_', '-') or a quoted string");
    if (at_ < text_.size() && text_[at_] == '.') bad("dotted names are not supported: quote the name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  json::Value value(bool in_array = false) {
    skip_space();
    if (at_ == text_.size() || text_[at_] == '#') bad("the value is missing");
    const char c = text_[at_];
    if (c == '"' || c == '\'') return string();
    if (c == '{') bad("inline tables are not supported");
    if (c == '[') {
      if (in_array) bad("arrays of arrays are not supported");
      return array();
    }
    return scalar();
  }

  json::Value value_of(const std::string& key) {
    place_ = key + ": ";
    json::Value read = value();
    expect_end();
    place_.clear();
    return read;
  }

  [[noreturn]] void bad(const std::string& reason) const {
    fail(ErrorKind::invalid_argument, "{}:{}: {}{}", what_, line_, place_, reason);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  json::Value array() {
    json::Array items;
    ++at_;
    while (!accept(']')) {
      if (at_end()) bad("the array has no ']' on its line");
      items.push_back(value(true));
      if (!accept(',')) {
        expect(']', "or ',' in the array");
        break;
      }
    }
    return items;
  }

  std::string string() {
    const char quote = text_[at_];
    if (text_.substr(at_, 3) == std::string(3, quote)) bad("multi-line strings are not supported");
    ++at_;
    std::string out;
    for (;;) {
      if (at_ == text_.size()) bad(fmt::format("the string has no closing {}", quote));
      const char c = text_[at_++];
      if (c == quote) return out;
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t') bad("a control character stands in a string");
      if (c == '\\' && quote == '"') escape(out);
      else out += c;
    }
  }

  void escape(std::string& out) {
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case 'b': out += '\b'; return;
      case 't': out += '\t'; return;
      case 'n': out += '\n'; return;
      case 'f': out += '\f'; return;
      case 'r': out += '\r'; return;
      case '"': out += '"'; return;
      case '\\': out += '\\'; return;
      case 'u': unicode(out); return;
      default: bad("unknown escape in a string (known: \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX)");
    }
  }

  void unicode(std::string& out) {
    unsigned code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4 || (code >= 0xD800 && code < 0xE000))
      bad("\\u needs four hexadecimal digits of a character that is no surrogate");
    at_ += 4;
    append_utf8(out, code);
  }

  json::Value scalar() {
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \t,]#").find(text_[at_]) == std::string_view::npos) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "true") return true;
    if (word == "false") return false;
    std::string digits;
    for (size_t i = 0; i < word.size(); ++i)
      if (word[i] != '_' || i == 0 || i + 1 == word.size() || !ascii::is_digit(word[i - 1]) ||
          !ascii::is_digit(word[i + 1]))
        digits += word[i];
    std::string_view number = digits;
    if (number.starts_with('+')) number.remove_prefix(1);
    int64_t integer = 0;
    const char* last = number.data() + number.size();
    if (const auto result = std::from_chars(number.data(), last, integer);
        result.ec == std::errc() && result.ptr == last)
      return integer;
    double real = 0;
    if (const auto result = std::from_chars(number.data(), last, real);
        result.ec == std::errc() && result.ptr == last && std::isfinite(real))
      return real;
    bad(fmt::format("'{}' is no value: strings stand in quotes", word));
  }

  std::string_view text_, what_;
  std::string place_;  // the key whose value is being read, for errors
  int line_;
  size_t at_ = 0;
};

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view text, std::string_view what) {
  constexpr size_t kBytesMax = size_t{1} << 20;
  if (text.size() > kBytesMax)
    fail(ErrorKind::invalid_argument, "{}: {} bytes, at most {} are read", what, text.size(), kBytesMax);
  std::vector<TomlEntry> entries;
  std::set<std::pair<std::string, std::string>> seen;
  std::string table;
  int number = 0;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.ends_with('\r')) content.remove_suffix(1);

    LineParser line(content, what, number);
    if (line.at_end()) continue;
    if (line.accept('[')) {
      if (line.accept('[')) line.bad("arrays of tables are not supported");
      table = line.key();
      line.expect(']', "after the table's name");
      line.expect_end();
      continue;
    }
    TomlEntry entry{.table = table, .key = line.key(), .value = {}, .line = number};
    line.expect('=', fmt::format("after '{}'", entry.key));
    entry.value = line.value_of(entry.key);
    if (!seen.emplace(entry.table, entry.key).second) line.bad(fmt::format("'{}' is given twice", entry.key));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace hearth::hub
