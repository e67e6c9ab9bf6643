// Linear scanners for the pre-tokenizer patterns of the known families. Each takes, at a position, the first
// alternative of its pattern that matches there, with the extent that greedy backtracking would give it.
#include <array>
#include <cstring>

#include "text/tokenizer/matcher.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

using unicode::classes;
using unicode::CodePoint;
using unicode::decode;
using unicode::kLetter;
using unicode::kLower;
using unicode::kMark;
using unicode::kNumber;
using unicode::kPunctuation;
using unicode::kSpace;
using unicode::kSymbol;
using unicode::kUpper;

// A family of patterns: words, digits, punctuation, white space, in this order.
struct WordPattern {
  enum class Words { space_prefix, any_prefix, cased, deepseek } words;
  enum class Contractions { none, exact, folded, folded_suffix } contractions;
  enum class Tail { none, newlines, newlines_and_slashes } tail;  // what a run of punctuation takes along
  bool marks;                                                     // combining marks belong to words
  int digits;                                                     // longest run; 0: no bound
  bool newline_runs;                                              // \s*[\r\n]+ before the other white space
};
using Words = WordPattern::Words;
using Contractions = WordPattern::Contractions;
using Tail = WordPattern::Tail;

constexpr WordPattern kGpt2 = {Words::space_prefix, Contractions::exact, Tail::none, false, 0, false};
constexpr WordPattern kLlama3 = {Words::any_prefix, Contractions::folded, Tail::newlines, false, 3, true};
constexpr WordPattern kQwen2 = {Words::any_prefix, Contractions::folded, Tail::newlines, false, 1, true};
constexpr WordPattern kQwen35 = {Words::any_prefix, Contractions::folded, Tail::newlines, true, 1, true};
constexpr WordPattern kMinicpm5 = {Words::any_prefix, Contractions::folded, Tail::newlines, false, 0, true};
constexpr WordPattern kBare = {Words::any_prefix, Contractions::none, Tail::newlines, false, 1, true};
constexpr WordPattern kTekken = {Words::cased, Contractions::none, Tail::newlines_and_slashes, false, 1, true};
constexpr WordPattern kO200k = {Words::cased, Contractions::folded_suffix, Tail::newlines_and_slashes, false, 3, true};
constexpr WordPattern kDeepseek3 = {Words::deepseek, Contractions::none, Tail::newlines, true, 0, true};

std::string spelling(const WordPattern& p) {
  const std::string digits = p.digits == 0 ? R"(\p{N}+)" : p.digits == 1 ? R"(\p{N})" : R"(\p{N}{1,3})";
  const std::string contractions = "'s|'t|'re|'ve|'m|'ll|'d";
  const std::string space = R"(\s+(?!\S)|\s+)";
  if (p.words == Words::space_prefix) return contractions + R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)" + space;
  if (p.words == Words::deepseek)
    return R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
           R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|)" +
           space;
  std::string out = p.contractions == Contractions::folded ? "(?i:" + contractions + ")|" : "";
  const std::string prefix = R"([^\r\n\p{L}\p{N}]?)";
  if (p.words == Words::any_prefix) out += prefix + (p.marks ? R"([\p{L}\p{M}]+|)" : R"(\p{L}+|)");
  else {
    const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])", lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
    const std::string suffix = p.contractions == Contractions::folded_suffix ? "(?i:" + contractions + ")?|" : "|";
    out += prefix + upper + "*" + lower + "+" + suffix + prefix + upper + "+" + lower + "*" + suffix;
  }
  out += digits + (p.marks ? R"(| ?[^\s\p{L}\p{M}\p{N}]+)" : R"(| ?[^\s\p{L}\p{N}]+)");
  out += p.tail == Tail::newlines ? R"([\r\n]*|)" : R"([\r\n/]*|)";
  return out + R"(\s*[\r\n]+|)" + space;
}

// Size of the contraction that begins at text[at], or 0. Folding follows Unicode: U+017F folds to s.
size_t contraction(std::string_view text, size_t at, bool folded) {
  if (text[at] != '\'' || at + 1 >= text.size()) return 0;
  const auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return 0;
    const char c = text[i];
    return folded && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char a = letter(at + 1), b = letter(at + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  if (folded && text.substr(at + 1).starts_with("\u017F")) return 3;
  return 0;
}

bool is_newline(uint32_t c) { return c == '\r' || c == '\n'; }

// End of the longest run from `at` of characters with one of the classes.
size_t run_of(std::string_view text, size_t at, uint16_t any) {
  while (at < text.size()) {
    const CodePoint c = decode(text, at);
    if (!(classes(c.value) & any)) break;
    at += c.size;
  }
  return at;
}

// How far a scanner goes from a place, and whether that is a match.
struct Step {
  size_t end;
  bool matches;
};

// Spans that tile the text: each match, and what lies between two of them as one. step(at) moves on.
template <class Next>
void tile(std::string_view text, std::vector<Span>& out, const Next& step) {
  size_t gap = 0, at = 0;
  while (at < text.size()) {
    const Step next = step(at);
    if (next.matches) {
      if (gap < at) out.push_back({gap, at, false});
      out.push_back({at, next.end, true});
      gap = next.end;
    }
    at = next.end;
  }
  if (gap < at) out.push_back({gap, at, false});
}

class WordScanner : public Matcher {
 public:
  explicit WordScanner(const WordPattern& p) : p_(p) {}

  void find(std::string_view text, std::vector<Span>& out) const override {
    tile(text, out, [&](size_t at) {
      const size_t end = match(text, at);
      return end > at ? Step{end, true} : Step{at + decode(text, at).size, false};
    });
  }

 private:
  // End of the match at `at`, or `at`.
  size_t match(std::string_view text, size_t at) const {
    if (p_.contractions == Contractions::exact || p_.contractions == Contractions::folded)
      if (const size_t n = contraction(text, at, p_.contractions == Contractions::folded)) return at + n;
    size_t end = at;
    switch (p_.words) {
      case Words::space_prefix: end = space_prefixed(text, at); break;
      case Words::any_prefix: end = any_prefixed(text, at); break;
      case Words::cased: end = cased(text, at); break;
      case Words::deepseek: end = deepseek(text, at); break;
    }
    if (end > at) return end;
    if (p_.words != Words::deepseek && (end = digits(text, at)) > at) return end;
    if ((end = punctuation(text, at)) > at) return end;
    return white_space(text, at);
  }

  size_t space_prefixed(std::string_view text, size_t at) const {
    const size_t begin = text[at] == ' ' ? at + 1 : at;
    size_t end = run_of(text, begin, kLetter);
    if (end == begin) end = run_of(text, begin, kNumber);
    return end == begin ? at : end;
  }

  size_t any_prefixed(std::string_view text, size_t at) const {
    const uint16_t word = p_.marks ? kLetter | kMark : kLetter;
    const CodePoint c = decode(text, at);
    const uint16_t kind = classes(c.value);
    if (kind & word) return run_of(text, at, word);
    if (is_newline(c.value) || (kind & kNumber)) return at;
    const size_t begin = at + c.size, end = run_of(text, begin, word);
    return end == begin ? at : end;
  }

  // [prefix]? U* L+ | [prefix]? U+ L*, where the classes U and L share Lm, Lo and M.
  size_t cased(std::string_view text, size_t at) const {
    const CodePoint c = decode(text, at);
    const uint16_t kind = classes(c.value);
    const bool may_prefix = !is_newline(c.value) && !(kind & (kLetter | kNumber));
    size_t begins[2];
    size_t n = 0;
    if (may_prefix) begins[n++] = at + c.size;
    if (!may_prefix || (kind & kMark)) begins[n++] = at;
    for (const bool lower_needed : {true, false})
      for (size_t i = 0; i < n; ++i) {
        const size_t end = cased_from(text, begins[i], lower_needed);
        if (end == begins[i]) continue;
        if (p_.contractions == Contractions::folded_suffix && end < text.size())
          return end + contraction(text, end, true);
        return end;
      }
    return at;
  }

  static size_t cased_from(std::string_view text, size_t begin, bool lower_needed) {
    size_t upper_end = begin, shared_end = begin;  // of the U run; after its last character that is also in L
    while (upper_end < text.size()) {
      const CodePoint c = decode(text, upper_end);
      const uint16_t kind = classes(c.value);
      if (!(kind & kUpper)) break;
      upper_end += c.size;
      if (kind & kLower) shared_end = upper_end;
    }
    const size_t lower_end = run_of(text, upper_end, kLower);
    if (lower_end > upper_end) return lower_end;
    return lower_needed ? shared_end : upper_end;
  }

  static size_t deepseek(std::string_view text, size_t at) {
    const CodePoint c = decode(text, at);
    if (unicode::is_ascii_punctuation(c.value)) {
      size_t end = at + 1;
      while (end < text.size() && ((text[end] | 32) >= 'a' && (text[end] | 32) <= 'z')) ++end;
      if (end > at + 1) return end;
    }
    const uint16_t kind = classes(c.value), word = kLetter | kMark;
    if (kind & word) return run_of(text, at, word);
    if (is_newline(c.value) || (kind & (kPunctuation | kSymbol))) return at;
    const size_t begin = at + c.size, end = run_of(text, begin, word);
    return end == begin ? at : end;
  }

  size_t digits(std::string_view text, size_t at) const {
    if (p_.words == Words::space_prefix) return at;  // taken by space_prefixed
    if (p_.digits == 0) return run_of(text, at, kNumber);
    for (int n = 0; n < p_.digits && at < text.size(); ++n) {
      const CodePoint c = decode(text, at);
      if (!(classes(c.value) & kNumber)) break;
      at += c.size;
    }
    return at;
  }

  size_t punctuation(std::string_view text, size_t at) const {
    const size_t begin = text[at] == ' ' ? at + 1 : at;
    const uint16_t not_in = kSpace | kLetter | kNumber | (p_.marks ? kMark : 0);
    size_t end = begin;
    while (end < text.size()) {
      const CodePoint c = decode(text, end);
      const uint16_t kind = classes(c.value);
      if (p_.words == Words::deepseek ? !(kind & (kPunctuation | kSymbol)) : (kind & not_in) != 0) break;
      end += c.size;
    }
    if (end == begin) return at;
    if (p_.tail != Tail::none)
      while (end < text.size() && (is_newline(static_cast<unsigned char>(text[end])) ||
                                   (p_.tail == Tail::newlines_and_slashes && text[end] == '/')))
        ++end;
    return end;
  }

  // \s*[\r\n]+ | \s+(?!\S) | \s+
  size_t white_space(std::string_view text, size_t at) const {
    size_t end = at, last = at, newline_end = at;
    while (end < text.size()) {
      const CodePoint c = decode(text, end);
      if (!(classes(c.value) & kSpace)) break;
      last = end;
      end += c.size;
      if (is_newline(c.value)) newline_end = end;
    }
    if (p_.newline_runs && newline_end > at) return newline_end;
    if (end == text.size()) return end;
    return last > at ? last : end;  // the last white space goes with the word behind it
  }

  WordPattern p_;
};

// Runs of characters of a kind, cut after `longest` characters (0: never); with `whole_only`, shorter runs do not
// match.
class RunScanner : public Matcher {
 public:
  RunScanner(bool (*is_member)(uint32_t), size_t longest, bool whole_only)
      : is_member_(is_member), longest_(longest), whole_only_(whole_only) {}

  void find(std::string_view text, std::vector<Span>& out) const override {
    tile(text, out, [&](size_t at) {
      size_t end = at, n = 0;
      while (end < text.size() && (longest_ == 0 || n < longest_)) {
        const CodePoint c = decode(text, end);
        if (!is_member_(c.value)) break;
        end += c.size;
        ++n;
      }
      if (n == 0) return Step{at + decode(text, at).size, false};
      return Step{end, !whole_only_ || n >= longest_};
    });
  }

 private:
  bool (*is_member_)(uint32_t);
  size_t longest_;
  bool whole_only_;
};

bool is_number(uint32_t c) { return (classes(c) & kNumber) != 0; }
bool is_ascii_digit(uint32_t c) { return c >= '0' && c <= '9'; }
bool is_cjk(uint32_t c) { return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF); }
bool is_falcon_punctuation(uint32_t c) {
  return (classes(c) & kPunctuation) ||
         (c < 0x80 && std::strchr("$+<=>^~|`", static_cast<int>(c)) != nullptr && c != 0);
}

// [^\n]+|[\n]+
class NewlineScanner : public Matcher {
 public:
  void find(std::string_view text, std::vector<Span>& out) const override {
    for (size_t at = 0; at < text.size();) {
      const size_t end =
          std::min(text.size(), text[at] == '\n' ? text.find_first_not_of('\n', at) : text.find('\n', at));
      out.push_back({at, end, true});
      at = end;
    }
  }
};

}  // namespace

namespace patterns {
const std::string kGpt2 = spelling(text::kGpt2);
const std::string kLlama3 = spelling(text::kLlama3);
const std::string kQwen2 = spelling(text::kQwen2);
const std::string kQwen35 = spelling(text::kQwen35);
const std::string kMinicpm5 = spelling(text::kMinicpm5);
const std::string kNoContractions = spelling(text::kBare);
const std::string kTekken = spelling(text::kTekken);
const std::string kO200k = spelling(text::kO200k);
const std::string kDeepseek3 = spelling(text::kDeepseek3);
const std::string kThreeNumbers = R"(\p{N}{1,3})";
const std::string kNumber = R"(\p{N})";
const std::string kNumbers = R"(\p{N}+)";
const std::string kCjkRuns = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
const std::string kThreeDigits = "[0-9][0-9][0-9]";
const std::string kNewlines = R"([^\n]+|[\n]+)";
const std::string kFalconPunctuation = R"([\p{P}\$\+<=>\^~\|`]+)";
}  // namespace patterns

std::unique_ptr<const Matcher> scanner_for(std::string_view pattern) {
  // Files spell line ends inside classes as the characters or as escapes.
  std::string text;
  for (const char c : pattern)
    if (c == '\r') text += "\\r";
    else if (c == '\n') text += "\\n";
    else text += c;
  static constexpr const WordPattern* kFamilies[] = {&kGpt2, &kLlama3, &kQwen2, &kQwen35,   &kMinicpm5,
                                                     &kBare, &kTekken, &kO200k, &kDeepseek3};
  for (const WordPattern* family : kFamilies)
    if (text == spelling(*family)) return std::make_unique<WordScanner>(*family);
  const auto runs = [](bool (*is_member)(uint32_t), size_t longest, bool whole_only) {
    return std::make_unique<RunScanner>(is_member, longest, whole_only);
  };
  if (text == patterns::kThreeNumbers) return runs(is_number, 3, false);
  if (text == patterns::kNumber) return runs(is_number, 1, false);
  if (text == patterns::kNumbers) return runs(is_number, 0, false);
  if (text == patterns::kCjkRuns) return runs(is_cjk, 0, false);
  if (text == patterns::kThreeDigits) return runs(is_ascii_digit, 3, true);
  if (text == patterns::kFalconPunctuation) return runs(is_falcon_punctuation, 0, false);
  if (text == patterns::kNewlines) return std::make_unique<NewlineScanner>();
  return nullptr;
}

}  // namespace hearth::text
