// GBNF and a subset of Lark (the syntax stands at compile_ebnf in grammar.h), read in one pass with a stack of groups.
#include <algorithm>
#include <map>
#include <optional>

#include "base/limit_error.h"
#include "base/utf8.h"
#include "base/printable.h"
#include "text/grammar/expr.h"
#include "text/grammar/grammar.h"
#include "text/grammar/regex.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {

using namespace grammar;

namespace {

constexpr size_t kRulesMax = 4096;
constexpr uint32_t kRepeatMax = 100'000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class EbnfParser {
 public:
  EbnfParser(std::string_view text, const GrammarLimits& limits) : text_(text), b_(limits) {}

  GrammarPtr parse() {
    if (text_.size() > b_.limits().bytes)
      fail_limit(kGrammarBytes, "the grammar has {} bytes, the limit is {}", text_.size(), b_.limits().bytes);
    if (!is_utf8(text_)) fail(ErrorKind::invalid_argument, "the grammar is not UTF-8");
    lark_ = !has_gbnf_rule();
    skip();
    while (at_ < text_.size()) {
      const std::optional<Head> head = rule_head();
      if (!head)
        bad(lark_ && text_[at_] == '%' ? "directives (%import, %ignore) are not supported" : "a rule is expected");
      at_ = head->end;
      read_rule(head->name);
    }
    const std::string_view root = lark_ ? "start" : "root";
    const auto found = rules_.find(std::string(root));
    if (found == rules_.end()) fail(ErrorKind::invalid_argument, "the grammar has no rule \"{}\"", root);
    return b_.compile(b_.call(found->second.id));
  }

 private:
  struct Item {
    Expr expr;
    bool loops = false;
    std::optional<uint32_t> letter;  // a string of one character: may begin a range
  };
  struct Group {
    char close = 0;
    std::vector<Expr> alternatives;
    std::vector<Item> items;
    bool loops = false;
  };
  struct Head {
    std::string name;
    size_t end;
  };
  struct Rule {
    RuleId id;
    bool defined = false;
  };

  std::string placed(std::string_view why) const {
    const size_t at = std::min(at_, text_.size());
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return fmt::format("the grammar, line {}: {}", line, why);
  }
  [[noreturn]] void bad(std::string_view why) const { throw Error(ErrorKind::invalid_argument, placed(why)); }
  bool next_is(std::string_view s) const { return text_.substr(at_).starts_with(s); }

  // `::=` outside of strings and comments.
  bool has_gbnf_rule() const {
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        for (++i; i < text_.size() && text_[i] != '"' && text_[i] != '\n'; ++i)
          if (text_[i] == '\\') ++i;
      } else if (text_.substr(i).starts_with("//") || text_[i] == '#') {
        while (i < text_.size() && text_[i] != '\n') ++i;
      } else if (text_.substr(i).starts_with("::=")) {
        return true;
      }
    }
    return false;
  }

  // White space, line ends and comments.
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') ++at_;
      else if (c == '#' || (lark_ && next_is("//")))
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else break;
    }
  }

  size_t name_end(size_t i) const {
    if (i >= text_.size() || !(is_letter(text_[i]) || text_[i] == '_')) return i;
    while (i < text_.size() &&
           (is_letter(text_[i]) || is_digit(text_[i]) || text_[i] == '_' || (!lark_ && text_[i] == '-')))
      ++i;
    return i;
  }

  // The head of a rule that begins here.
  std::optional<Head> rule_head() const {
    size_t i = at_;
    if (lark_ && i < text_.size() && (text_[i] == '?' || text_[i] == '!')) ++i;
    const size_t end = name_end(i);
    if (end == i) return std::nullopt;
    Head head{std::string(text_.substr(i, end - i)), end};
    while (head.end < text_.size() && (text_[head.end] == ' ' || text_[head.end] == '\t')) ++head.end;
    const std::string_view mark = lark_ ? ":" : "::=";
    if (!text_.substr(head.end).starts_with(mark)) return std::nullopt;
    head.end += mark.size();
    return head;
  }

  Rule& rule(const std::string& name) {
    const auto [found, made] = rules_.try_emplace(name);
    if (made) {
      if (rules_.size() > kRulesMax) bad(fmt::format("more than {} rules", kRulesMax));
      found->second.id = b_.rule(name);
    }
    return found->second;
  }

  void read_rule(const std::string& name) {
    Rule& r = rule(name);
    if (r.defined) bad(fmt::format("rule \"{}\" is defined twice", name));
    r.defined = true;
    const RuleId id = r.id;
    groups_.clear();
    groups_.emplace_back();
    for (;;) {
      skip();
      if (at_ >= text_.size()) break;
      if (groups_.size() == 1 && rule_head()) break;
      one();
    }
    if (groups_.size() > 1) bad("a group is not closed");
    end_alternative();
    b_.define(id, b_.choice(std::move(groups_.back().alternatives)));
  }

  void one() {
    const char c = text_[at_];
    if (c == '"') return string();
    if (c == '(' || (lark_ && c == '[')) return open(c == '(' ? ')' : ']');
    if (c == ')' || (lark_ && c == ']')) return close(c);
    if (c == '|') {
      ++at_;
      return end_alternative();
    }
    if (c == '[') return quantified({.expr = b_.points(parse_class())});
    if (!lark_ && c == '.') {
      ++at_;
      return quantified({.expr = b_.points(negated({}))});
    }
    if (lark_ && c == '/') return slashed();
    if (const size_t end = name_end(at_); end > at_) {
      const std::string name(text_.substr(at_, end - at_));
      at_ = end;
      if (lark_ && next_is("{")) bad("templates are not supported");
      return quantified({.expr = b_.call(rule(name).id)});
    }
    if (next_is("->")) bad("aliases are not supported");
    if (c == '%') bad("directives (%import, %ignore) are not supported");
    if (c == '<') bad("token references are not supported");
    bad(fmt::format("unexpected \"{}\"", printable(text_.substr(at_, unicode::decode(text_, at_).size))));
  }

  void open(char close) {
    ++at_;
    if (const int most = b_.limits().depth; groups_.size() > static_cast<size_t>(most))
      throw LimitError(std::string(kGrammarDepth), placed(fmt::format("groups are nested more than {} deep", most)));
    groups_.emplace_back();
    groups_.back().close = close;
  }

  void close(char c) {
    if (groups_.back().close != c) bad(fmt::format("a {} closes no group", c));
    ++at_;
    end_alternative();
    Group group = std::move(groups_.back());
    groups_.pop_back();
    Expr e = b_.choice(std::move(group.alternatives));
    if (c == ']') e = b_.optional(e);
    quantified({.expr = e, .loops = group.loops});
  }

  void end_alternative() {
    Group& g = groups_.back();
    if (g.items.size() == 1 && g.items[0].loops) g.loops = true;
    std::vector<Expr> parts;
    for (const Item& item : g.items) parts.push_back(item.expr);
    g.alternatives.push_back(b_.sequence(std::move(parts)));
    g.items.clear();
  }

  uint32_t hex(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      if (!is_digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F')) bad("a hexadecimal digit is missing");
      value = value << 4 | static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
  }

  // One character of a string or class, escapes resolved.
  uint32_t character() {
    if (at_ >= text_.size() || text_[at_] == '\n') bad("a string or class is not closed");
    const unicode::CodePoint c = unicode::decode(text_, at_);
    at_ += c.size;
    if (c.value != '\\') return c.value;
    if (at_ >= text_.size()) bad("a string or class is not closed");
    const char e = text_[at_++];
    uint32_t value = 0;
    switch (e) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'f': return '\f';
      case 'x': value = hex(2); break;
      case 'u': value = hex(4); break;
      case 'U': value = hex(8); break;
      default:
        if (is_letter(e) || is_digit(e)) bad(fmt::format("unknown escape \\{}", e));
        --at_;
        value = unicode::decode(text_, at_).value;
        at_ += unicode::decode(text_, at_).size;
        return value;
    }
    if (value >= unicode::kCodePoints || (value >= 0xD800 && value <= 0xDFFF)) bad("an escape is no character");
    return value;
  }

  std::string quoted() {
    std::string bytes;
    for (++at_; !next_is("\"");) unicode::append(bytes, character());
    ++at_;
    return bytes;
  }

  void string() {
    const std::string bytes = quoted();
    if (lark_ && next_is("i") && name_end(at_) == at_ + 1) {
      ++at_;
      return quantified({.expr = any_case(bytes)});
    }
    Item item{.expr = b_.literal(bytes)};
    if (!bytes.empty() && unicode::decode(bytes, 0).size == bytes.size()) item.letter = unicode::decode(bytes, 0).value;
    if (lark_) {
      const size_t back = at_;
      skip();
      if (next_is("..") && item.letter) return range(*item.letter);
      at_ = back;
    }
    quantified(item);
  }

  void range(uint32_t low) {
    at_ += 2;
    skip();
    if (!next_is("\"")) bad("a range wants a string of one character at both ends");
    const std::string bytes = quoted();
    if (bytes.empty() || unicode::decode(bytes, 0).size != bytes.size() || unicode::decode(bytes, 0).value < low)
      bad("a range wants a string of one character at both ends, the lower one first");
    quantified({.expr = b_.points(normalized({{low, unicode::decode(bytes, 0).value}}))});
  }

  Expr any_case(const std::string& bytes) {
    std::vector<Expr> parts;
    for (const char c : bytes) {
      if (static_cast<unsigned char>(c) >= 0x80) bad("\"text\"i wants ASCII");
      ByteSet set;
      set.add(static_cast<uint8_t>(c));
      if (is_letter(c)) set.add(static_cast<uint8_t>(c ^ 0x20));
      parts.push_back(b_.bytes(set));
    }
    return b_.sequence(std::move(parts));
  }

  // /regex/ ends at the first / that no \ stands before and no class holds.
  void slashed() {
    const size_t begin = ++at_;
    bool in_class = false;
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      const char c = text_[at_];
      if (c == '\\') ++at_;
      else if (c == '[') in_class = true;
      else if (c == ']') in_class = false;
      else if (c == '/' && !in_class) break;
    }
    if (at_ >= text_.size() || text_[at_] != '/') bad("a regex is not closed");
    const std::string_view pattern = text_.substr(begin, at_ - begin);
    ++at_;
    if (name_end(at_) > at_) bad("flags of a regex are not supported");
    const std::string what = fmt::format("the grammar's regex /{}/", printable(pattern, 60));
    quantified({.expr = regex_expr(b_, pattern, {.what = what})});
  }

  Points parse_class() {
    ++at_;
    const bool negative = next_is("^");
    if (negative) ++at_;
    Points set;
    if (next_is("]")) bad("an empty class");
    while (!next_is("]")) {
      const uint32_t low = character();
      uint32_t high = low;
      if (next_is("-") && !next_is("-]")) {
        ++at_;
        high = character();
        if (high < low) bad("a range goes backwards");
      }
      set.push_back({low, high});
    }
    ++at_;
    b_.budget().spend(8 + 4 * static_cast<int64_t>(set.size()));
    set = normalized(std::move(set));
    return negative ? negated(set) : set;
  }

  std::optional<uint32_t> number() {
    if (at_ >= text_.size() || !is_digit(text_[at_])) return std::nullopt;
    uint32_t n = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      n = n * 10 + static_cast<uint32_t>(text_[at_] - '0');
      if (n > kRepeatMax) bad(fmt::format("a repeat of more than {}", kRepeatMax));
    }
    return n;
  }

  struct Times {
    uint32_t min = 0, max = GrammarBuilder::kUnbounded;
  };
  std::optional<Times> quantifier() {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '*' || c == '+' || c == '?') {
      // ?name: of Lark begins the next rule.
      if (lark_ && c == '?' && groups_.size() == 1 && rule_head()) return std::nullopt;
      ++at_;
      return Times{.min = c == '+', .max = c == '?' ? 1 : GrammarBuilder::kUnbounded};
    }
    if (!lark_ && c == '{') {
      ++at_;
      const std::optional<uint32_t> low = number();
      Times t{.min = low.value_or(0), .max = low.value_or(0)};
      if (next_is(",")) {
        ++at_;
        const std::optional<uint32_t> high = number();
        if (!low && !high) bad("a repeat wants a number");
        t.max = high.value_or(GrammarBuilder::kUnbounded);
      } else if (!low) {
        bad("a repeat wants a number");
      }
      if (!next_is("}")) bad("a repeat is not closed");
      ++at_;
      return t;
    }
    if (lark_ && c == '~') {
      ++at_;
      skip();
      const std::optional<uint32_t> low = number();
      if (!low) bad("~ wants a number");
      Times t{.min = *low, .max = *low};
      if (next_is("..")) {
        at_ += 2;
        const std::optional<uint32_t> high = number();
        if (!high) bad("~ n.. wants a number");
        t.max = *high;
      }
      return t;
    }
    return std::nullopt;
  }

  void quantified(Item item) {
    for (;;) {
      const size_t back = at_;
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      const std::optional<Times> times = quantifier();
      if (!times) {
        at_ = back;
        break;
      }
      if (times->max < times->min) bad(fmt::format("a repeat of at least {} and at most {}", times->min, times->max));
      const bool unbounded = times->max == GrammarBuilder::kUnbounded;
      if (unbounded && item.loops)
        bad("an unbounded repeat of an unbounded repeat is not supported: (a+)+ says no more than a+");
      item = {.expr = b_.repeat(item.expr, times->min, times->max), .loops = unbounded || item.loops, .letter = {}};
    }
    groups_.back().items.push_back(item);
  }

  const std::string_view text_;
  bool lark_ = false;
  size_t at_ = 0;
  GrammarBuilder b_;
  std::map<std::string, Rule> rules_;
  std::vector<Group> groups_;
};

}  // namespace

GrammarPtr compile_ebnf(std::string_view text, const GrammarLimits& limits) { return EbnfParser(text, limits).parse(); }

}  // namespace hearth::text
