#include "text/grammar/regex.h"

#include <algorithm>
#include <map>

#include "base/limit_error.h"
#include "base/utf8.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {

namespace grammar {

namespace {

constexpr uint32_t kRepeatMax = 100'000;

class RegexParser {
 public:
  RegexParser(GrammarBuilder& builder, std::string_view text, const RegexUse& use)
      : b_(builder), text_(text), use_(use) {}

  Expr parse() {
    if (text_.size() > b_.limits().bytes)
      fail_limit(kGrammarBytes, "{} has {} bytes, the limit is {}", use_.what, text_.size(), b_.limits().bytes);
    if (!is_utf8(text_)) fail(ErrorKind::invalid_argument, "{} is not UTF-8", use_.what);
    groups_.emplace_back();
    while (at_ < text_.size()) one();
    if (groups_.size() > 1) bad("a group is not closed");
    end_alternative();
    return b_.choice(std::move(groups_.back().alternatives));
  }

 private:
  // A part of an alternative. loops: an unbounded repeat, or a group with an alternative that is nothing else.
  struct Item {
    Expr expr;
    bool loops = false, anchor = false;
  };
  struct Group {
    std::vector<Expr> alternatives;
    std::vector<Item> items;  // of the alternative being read
    bool loops = false, starts = false, ends = false;
  };

  std::string placed(std::string_view why) const {
    return fmt::format("{} at byte {}: {}", use_.what, std::min(at_, text_.size()), why);
  }
  [[noreturn]] void bad(std::string_view why) const { throw Error(ErrorKind::invalid_argument, placed(why)); }
  bool next_is(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  uint32_t take_point() {
    if (at_ >= text_.size()) bad("it ends too early");
    const unicode::CodePoint c = unicode::decode(text_, at_);
    at_ += c.size;
    return c.value;
  }

  void one() {
    const char c = text_[at_];
    switch (c) {
      case '(': return open_group();
      case ')': return close_group();
      case '|': ++at_; return end_alternative();
      case '^':
      case '$': return anchor(c);
      case '*':
      case '+':
      case '?': bad(fmt::format("nothing stands before {}", c));
      case '.': ++at_; return add(all_but_newline());
      case '[': return add(parse_class());
      case '\\': return add(parse_escape());
      case '{':
        if (is_quantifier()) bad("nothing stands before {");
        [[fallthrough]];
      default: {
        const uint32_t point = take_point();
        return add({{point, point}});
      }
    }
  }

  void add(const Points& set) {
    const bool one = set.size() == 1 && set[0].lo == set[0].hi;
    std::string bytes;
    if (one) unicode::append(bytes, set[0].lo);
    quantified({.expr = !one                             ? b_.points(set, use_.encoding)
                        : use_.encoding == Encoding::raw ? b_.literal(bytes)
                                                         : b_.literal(json_escaped(bytes))});
  }

  void open_group() {
    ++at_;
    if (next_is("?")) {
      if (next_is("?:")) at_ += 2;
      else if (next_is("?P<") || (next_is("?<") && !next_is("?<=") && !next_is("?<!"))) skip_name();
      else if (next_is("?=") || next_is("?!") || next_is("?<=") || next_is("?<!")) bad("look-around is not supported");
      else if (next_is("?P=")) bad("back-references are not supported");
      else bad("this kind of group is not supported");
    }
    if (const int most = b_.limits().depth; groups_.size() > static_cast<size_t>(most))
      throw LimitError(std::string(kGrammarDepth), placed(fmt::format("groups are nested more than {} deep", most)));
    groups_.emplace_back();
  }

  void skip_name() {
    const size_t close = text_.find('>', at_);
    if (close == std::string_view::npos) bad("the group's name is not closed");
    at_ = close + 1;
  }

  void close_group() {
    if (groups_.size() == 1) bad("a ) closes no group");
    ++at_;
    end_alternative();
    Group group = std::move(groups_.back());
    groups_.pop_back();
    quantified({.expr = b_.choice(std::move(group.alternatives)), .loops = group.loops});
  }

  void anchor(char c) {
    Group& g = groups_.back();
    if (groups_.size() > 1) bad(fmt::format("{} inside of a group is not supported", c));
    if (c == '^' && (!g.items.empty() || g.starts)) bad("^ stands behind other parts");
    ++at_;
    if (c == '$' && at_ < text_.size() && text_[at_] != '|') bad("$ stands before other parts");
    (c == '^' ? g.starts : g.ends) = true;
    if (at_ < text_.size() && std::string_view("*+?").find(text_[at_]) != std::string_view::npos)
      bad("an anchor is repeated");
  }

  void end_alternative() {
    Group& g = groups_.back();
    if (g.items.size() == 1 && g.items[0].loops) g.loops = true;
    std::vector<Expr> parts;
    const bool search = use_.search && groups_.size() == 1;
    if (search && !g.starts) parts.push_back(anything());
    for (const Item& item : g.items) parts.push_back(item.expr);
    if (search && !g.ends) parts.push_back(anything());
    g.alternatives.push_back(b_.sequence(std::move(parts)));
    g.items.clear();
    g.starts = g.ends = false;
  }

  Expr anything() { return b_.repeat(b_.points(negated({}), use_.encoding), 0); }
  static Points all_but_newline() { return negated({{'\n', '\n'}}); }

  bool is_quantifier() const {
    size_t i = at_ + 1;
    const auto digits = [&] {
      const size_t from = i;
      while (i < text_.size() && text_[i] >= '0' && text_[i] <= '9') ++i;
      return i > from;
    };
    const bool low = digits();
    bool comma = false;
    if (i < text_.size() && text_[i] == ',') {
      comma = true;
      ++i;
      digits();
    }
    return (low || comma) && i < text_.size() && text_[i] == '}' && i > at_ + 1 && (low || text_[i - 1] != ',');
  }

  uint32_t take_number() {
    uint32_t n = 0;
    for (; text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      n = n * 10 + static_cast<uint32_t>(text_[at_] - '0');
      if (n > kRepeatMax) bad(fmt::format("a repeat of more than {}", kRepeatMax));
    }
    return n;
  }

  // Reads the quantifiers behind an item and adds it.
  void quantified(Item item) {
    for (int n = 0; at_ < text_.size(); ++n) {
      const char c = text_[at_];
      uint32_t min = 0, max = GrammarBuilder::kUnbounded;
      if (c == '*') ++at_;
      else if (c == '+') ++at_, min = 1;
      else if (c == '?') ++at_, max = 1;
      else if (c == '{' && is_quantifier()) {
        ++at_;
        if (text_[at_] == ',') bad("{,n} is not supported: write {0,n}");
        min = max = take_number();
        if (text_[at_] == ',') {
          ++at_;
          max = text_[at_] == '}' ? GrammarBuilder::kUnbounded : take_number();
        }
        ++at_;
        if (max < min) bad(fmt::format("a repeat of at least {} and at most {}", min, max));
      } else break;
      if (n > 0) bad("a repeat of a repeat is not supported: put a group around it");
      if (max == GrammarBuilder::kUnbounded && item.loops)
        bad("an unbounded repeat of an unbounded repeat is not supported: (a+)+ says no more than a+");
      if (next_is("+")) bad("possessive repeats are not supported");
      if (next_is("?")) ++at_;  // lazy: the same set of texts
      item = {.expr = b_.repeat(item.expr, min, max), .loops = max == GrammarBuilder::kUnbounded || item.loops};
    }
    groups_.back().items.push_back(item);
  }

  uint32_t take_hex(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const int d = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
      if (d < 0) bad("a hexadecimal digit is missing");
      value = value << 4 | static_cast<uint32_t>(d);
    }
    return value;
  }

  Points one_point(uint32_t c) const {
    if (c >= unicode::kCodePoints || (c >= 0xD800 && c <= 0xDFFF)) bad("this is no character");
    return {{c, c}};
  }

  Points property(bool negative) {
    if (!next_is("{")) bad("\\p wants a category in braces");
    const size_t close = text_.find('}', at_);
    if (close == std::string_view::npos) bad("\\p{ is not closed");
    const std::string name(text_.substr(at_ + 1, close - at_ - 1));
    auto [found, made] = categories_.try_emplace(name);
    if (made) {
      const std::optional<Points> points = category_points(name);
      if (!points) bad(fmt::format("no general category \"{}\"", name.substr(0, 40)));
      found->second = *points;
    }
    at_ = close + 1;
    return negative ? negated(found->second) : found->second;
  }

  Points parse_escape(bool in_class = false) {
    ++at_;
    const uint32_t c = take_point();
    switch (c) {
      case 'd': return digit_points();
      case 'D': return negated(digit_points());
      case 'w': return word_points();
      case 'W': return negated(word_points());
      case 's': return space_points();
      case 'S': return negated(space_points());
      case 'p': return property(false);
      case 'P': return property(true);
      case 't': return {{'\t', '\t'}};
      case 'n': return {{'\n', '\n'}};
      case 'r': return {{'\r', '\r'}};
      case 'f': return {{'\f', '\f'}};
      case 'v': return {{'\v', '\v'}};
      case 'x': return one_point(take_hex(2));
      case 'u': {
        if (!next_is("{")) return one_point(take_hex(4));
        ++at_;
        const size_t close = text_.find('}', at_);
        if (close == std::string_view::npos || close == at_ || close - at_ > 6) bad("\\u{ wants 1 to 6 digits and a }");
        const uint32_t value = take_hex(close - at_);
        ++at_;
        return one_point(value);
      }
      case '0':
        if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9') return {{0, 0}};
        bad("octal escapes are not supported");
      case 'b':
        if (in_class) return {{'\b', '\b'}};
        [[fallthrough]];
      case 'B':
      case 'A':
      case 'z':
      case 'Z': bad("anchors within the text are not supported");
      case 'k': bad("back-references are not supported");
      default: break;
    }
    if (c >= '1' && c <= '9') bad("back-references are not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) bad(fmt::format("unknown escape \\{}", static_cast<char>(c)));
    return {{c, c}};
  }

  // One member of a class: a set, or a single character that may begin a range.
  Points class_atom() {
    if (text_[at_] == '\\') return parse_escape(true);
    if (next_is("[:")) bad("[:name:] classes are not supported");
    const uint32_t c = take_point();
    return {{c, c}};
  }

  Points parse_class() {
    const size_t begin = at_++;
    const bool negative = next_is("^");
    if (negative) ++at_;
    Points set;
    if (next_is("]")) bad("an empty class");
    while (!next_is("]")) {
      if (at_ >= text_.size()) {
        at_ = begin;
        bad("the class is not closed");
      }
      const Points low = class_atom();
      if (!next_is("-") || next_is("-]")) {
        set.insert(set.end(), low.begin(), low.end());
        continue;
      }
      ++at_;
      if (at_ >= text_.size()) bad("the class is not closed");
      const Points high = class_atom();
      if (low.size() != 1 || low[0].lo != low[0].hi || high.size() != 1 || high[0].lo != high[0].hi)
        bad("a range wants a character at both ends");
      if (low[0].lo > high[0].lo) bad("a range goes backwards");
      set.push_back({low[0].lo, high[0].lo});
    }
    ++at_;
    b_.budget().spend(8 + 4 * static_cast<int64_t>(set.size()));
    set = normalized(std::move(set));
    return negative ? negated(set) : set;
  }

  GrammarBuilder& b_;
  const std::string_view text_;
  const RegexUse& use_;
  size_t at_ = 0;
  std::vector<Group> groups_;
  std::map<std::string, Points> categories_;
};

}  // namespace

Expr regex_expr(GrammarBuilder& builder, std::string_view pattern, const RegexUse& use) {
  return RegexParser(builder, pattern, use).parse();
}

Dfa regex_dfa(GrammarBuilder& builder, std::string_view pattern, const RegexUse& use) {
  return builder.to_dfa(regex_expr(builder, pattern, use), use.what);
}

}  // namespace grammar

Expr GrammarBuilder::regex(std::string_view pattern) { return grammar::regex_expr(*this, pattern, {}); }

}  // namespace hearth::text
