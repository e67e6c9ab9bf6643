#include "text/template/lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/utf8.h"
#include "text/template/unicode.h"

namespace hearth::text::jinja {
namespace {

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_ascii_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenKind::end);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void error(const std::string& what) const { throw SyntaxFault(what, line_); }

  bool starts(size_t at, std::string_view s) const { return source_.substr(at).starts_with(s); }

  // Moves to `end`, counting lines.
  void advance(size_t end) {
    for (; at_ < end; ++at_) line_ += source_[at_] == '\n';
  }

  Token& add(TokenKind kind) {
    Token& t = tokens_.emplace_back();
    t.kind = kind;
    t.line = line_;
    return t;
  }

  size_t behind_space(size_t at) const {
    while (at < source_.size()) {
      size_t next = at;
      if (!is_space(next_point(source_, next))) break;
      at = next;
    }
    return at;
  }

  // Text up to the next tag, stripped as the tag's sign and the block settings say.
  void data_until(size_t end, char sign, bool is_variable) {
    const bool line_starting = at_ == 0 || source_[at_ - 1] == '\n';
    std::string_view text = source_.substr(at_, end - at_);
    if (sign == '-') {
      text = strip_space(text, Side::right);
    } else if (sign != '+' && !is_variable) {
      const size_t newline = text.rfind('\n');
      const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_begin > 0 || line_starting) && strip_space(text.substr(line_begin), Side::both).empty())
        text = text.substr(0, line_begin);
    }
    if (!text.empty()) add(TokenKind::data).text = std::string(text);
    advance(end);
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : 0;
  }

  // End behind a tag that closes at `at` with "%}" or "#}" (sign, closing, then spaces or one newline); 0 if none does.
  size_t behind_close(size_t at, std::string_view close) const {
    const char sign = sign_at(at);
    if (!starts(at + (sign ? 1 : 0), close)) return 0;
    const size_t end = at + (sign ? 1 : 0) + close.size();
    if (sign == '-') return behind_space(end);
    if (sign == 0 && end < source_.size() && source_[end] == '\n') return end + 1;
    return end;
  }

  void root() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        add(TokenKind::data).text = std::string(source_.substr(at_));
        advance(source_.size());
        return;
      }
      const char c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    data_until(tag, sign, kind == '{');
    const size_t inside = tag + 2 + (sign ? 1 : 0);
    if (kind == '#') return comment(inside);
    if (kind == '%') {
      if (const size_t end = behind_raw_begin(inside)) return raw(end);
      add(TokenKind::block_begin);
    } else {
      add(TokenKind::variable_begin);
    }
    advance(inside);
    tag_body(kind == '{');
  }

  void comment(size_t at) {
    for (; at < source_.size(); ++at)
      if (const size_t end = behind_close(at, "#}")) return advance(end);
    error("a comment has no end");
  }

  size_t behind_raw_begin(size_t at) const {
    at = behind_space(at);
    if (!starts(at, "raw")) return 0;
    at = behind_space(at + 3);
    if (starts(at, "-%}")) return behind_space(at + 3);
    return starts(at, "%}") ? at + 2 : 0;
  }

  void raw(size_t begin) {
    advance(begin);
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != std::string_view::npos; ++tag) {
      const char sign = sign_at(tag + 2);
      const size_t word = behind_space(tag + 2 + (sign ? 1 : 0));
      if (!starts(word, "endraw")) continue;
      const size_t end = behind_close(behind_space(word + 6), "%}");
      if (end == 0) continue;
      data_until(tag, sign, false);
      return advance(end);
    }
    error("a raw block has no end");
  }

  void tag_body(bool is_variable) {
    std::string open;  // brackets to be closed
    for (;;) {
      if (at_ >= source_.size()) return;  // the parser reports the missing end
      if (open.empty()) {
        if (is_variable) {
          const bool minus = starts(at_, "-}}");
          if (minus || starts(at_, "}}")) {
            add(TokenKind::variable_end);
            return advance(minus ? behind_space(at_ + 3) : at_ + 2);
          }
        } else if (const size_t end = behind_close(at_, "%}")) {
          add(TokenKind::block_end);
          return advance(end);
        }
      }
      const size_t space = behind_space(at_);
      if (space != at_) {
        advance(space);
        continue;
      }
      if (number() || name()) continue;
      const char c = source_[at_];
      if (c == '\'' || c == '"') string();
      else op(open);
    }
  }

  // Digits of a base with single underscores between them; the end, or `at` when there is none.
  size_t digits(size_t at, int base) const {
    size_t end = at;
    while (end < source_.size()) {
      if (digit_value(source_[end]) < base) ++end;
      else if (source_[end] == '_' && end > at && end + 1 < source_.size() && digit_value(source_[end + 1]) < base)
        ++end;
      else break;
    }
    return end;
  }

  bool number() {
    if (!is_ascii_digit(source_[at_])) return false;
    const auto plain = [&](size_t begin, size_t end) {
      std::string s;
      for (const char c : source_.substr(begin, end - begin))
        if (c != '_') s += c;
      return s;
    };
    const size_t whole = digits(at_, 10);
    size_t end = whole;
    if (at_ == 0 || source_[at_ - 1] != '.') {
      if (end + 1 < source_.size() && source_[end] == '.' && is_ascii_digit(source_[end + 1]))
        end = digits(end + 1, 10);
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        const size_t sign = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-') ? 1 : 0;
        const size_t exponent = digits(end + 1 + sign, 10);
        if (exponent > end + 1 + sign) end = exponent;
      }
    }
    if (end > whole) {
      add(TokenKind::floating).floating = std::strtod(plain(at_, end).c_str(), nullptr);
      advance(end);
      return true;
    }
    int base = 10;
    size_t begin = at_;
    end = whole;
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char c = static_cast<char>(source_[at_ + 1] | 0x20);
      const int other = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
      if (other != 0) {
        const size_t first = at_ + 2 + (at_ + 2 < source_.size() && source_[at_ + 2] == '_' ? 1 : 0);
        if (const size_t stop = digits(first, other); stop > first) base = other, begin = first, end = stop;
      }
      if (base == 10) {  // "012" is 0 followed by 12, as the language has it
        end = at_ + 1;
        while (end < source_.size() && (source_[end] == '0' || (source_[end] == '_' && starts(end, "_0")))) ++end;
      }
    }
    const std::string s = plain(begin, end);
    int64_t v = 0;
    if (std::from_chars(s.data(), s.data() + s.size(), v, base).ec != std::errc())
      error(fmt::format("integer {} does not fit 64 bits", s.substr(0, 40)));
    add(TokenKind::integer).integer = v;
    advance(end);
    return true;
  }

  bool name() {
    size_t end = at_;
    while (end < source_.size()) {
      size_t next = end;
      if (!is_word(next_point(source_, next))) break;
      end = next;
    }
    if (end == at_) return false;
    add(TokenKind::name).text = std::string(source_.substr(at_, end - at_));
    advance(end);
    return true;
  }

  void string() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) error("a string has no end");
    const std::string_view body = source_.substr(at_ + 1, end - at_ - 1);
    add(TokenKind::string).text = unescape(body);
    advance(end + 1);
  }

  // Python's unicode-escape rules.
  std::string unescape(std::string_view s) const {
    std::string out;
    for (size_t i = 0; i < s.size();) {
      if (s[i] != '\\') {
        out += s[i++];
        continue;
      }
      const char c = s[++i];
      if (static_cast<unsigned char>(c) >= 0x80) {
        const char32_t point = next_point(s, i);
        out += point < 0x100     ? fmt::format("\\x{:02x}", static_cast<uint32_t>(point))
               : point < 0x10000 ? fmt::format("\\u{:04x}", static_cast<uint32_t>(point))
                                 : fmt::format("\\U{:08x}", static_cast<uint32_t>(point));
        continue;
      }
      ++i;
      static constexpr std::string_view kFrom = "abfnrtv\\'\"", kTo = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t k = kFrom.find(c); k != std::string_view::npos) out += kTo[k];
      else if (c == '\n') continue;
      else if (c >= '0' && c <= '7') i = numeric(out, s, i - 1, 3, 8, false);
      else if (c == 'x') i = numeric(out, s, i, 2, 16, true);
      else if (c == 'u') i = numeric(out, s, i, 4, 16, true);
      else if (c == 'U') i = numeric(out, s, i, 8, 16, true);
      else if (c == 'N') error("\\N escapes are not supported");
      else out += '\\', out += c;
    }
    return out;
  }

  size_t numeric(std::string& out, std::string_view s, size_t at, size_t digits_max, int base, bool exact) const {
    uint64_t v = 0;
    size_t n = 0;
    for (; n < digits_max && at + n < s.size() && digit_value(s[at + n]) < base; ++n)
      v = v * static_cast<uint64_t>(base) + static_cast<uint64_t>(digit_value(s[at + n]));
    if (exact && n != digits_max) error(fmt::format("truncated escape, {} hexadecimal digits expected", digits_max));
    if (v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) error(fmt::format("escape of U+{:04X} is no character", v));
    append_utf8(out, static_cast<char32_t>(v));
    return at + n;
  }

  void op(std::string& open) {
    static constexpr std::array<std::string_view, 26> kOps = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                              "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                              ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view s : kOps) {
      if (!starts(at_, s)) continue;
      const char c = s[0];
      if (s.size() == 1 && (c == '(' || c == '[' || c == '{')) {
        open += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if (s.size() == 1 && (c == ')' || c == ']' || c == '}')) {
        if (open.empty()) error(fmt::format("unexpected '{}'", c));
        if (open.back() != c) error(fmt::format("unexpected '{}', expected '{}'", c, open.back()));
        open.pop_back();
      }
      add(TokenKind::op).text = std::string(s);
      return advance(at_ + s.size());
    }
    size_t next = at_;
    next_point(source_, next);
    error(fmt::format("unexpected character '{}'", source_.substr(at_, next - at_)));
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  const std::string text = normalize_newlines(source);
  return Lexer(text).run();
}

}  // namespace hearth::text::jinja
