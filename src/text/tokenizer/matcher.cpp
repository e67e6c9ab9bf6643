#include "text/tokenizer/matcher.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

class LiteralMatcher : public Matcher {
 public:
  explicit LiteralMatcher(std::string pattern) : pattern_(std::move(pattern)) {}

  void find(std::string_view text, std::vector<Span>& out) const override {
    size_t at = 0;
    while (at < text.size()) {
      const size_t found = pattern_.empty() ? std::string_view::npos : text.find(pattern_, at);
      const size_t gap_end = std::min(found, text.size());
      if (at < gap_end) out.push_back({at, gap_end, false});
      if (gap_end == text.size()) return;
      at = found + pattern_.size();
      out.push_back({found, at, true});
    }
  }

 private:
  std::string pattern_;
};

class CharacterMatcher : public Matcher {
 public:
  explicit CharacterMatcher(bool (*is_match)(uint32_t)) : is_match_(is_match) {}

  void find(std::string_view text, std::vector<Span>& out) const override {
    size_t gap = 0, at = 0;
    while (at < text.size()) {
      const unicode::CodePoint c = unicode::decode(text, at);
      if (is_match_(c.value)) {
        if (gap < at) out.push_back({gap, at, false});
        out.push_back({at, at + c.size, true});
        gap = at + c.size;
      }
      at += c.size;
    }
    if (gap < at) out.push_back({gap, at, false});
  }

 private:
  bool (*is_match_)(uint32_t);
};

struct FreeCode {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};

// The white space of Unicode, which PCRE2's \s differs from at U+180E.
constexpr std::string_view kSpaceMembers =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// \s by its members everywhere, \S outside of classes.
std::string with_unicode_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's') (in_class ? out : out += '[').append(kSpaceMembers).append(in_class ? "" : "]");
      else if (next == 'S' && !in_class) out.append("[^").append(kSpaceMembers).append("]");
      else (out += c) += next;
      continue;
    }
    if (c == '[' && !in_class) {
      in_class = true;
      out += c;
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out += pattern[++i];  // a leading ] is a member
      continue;
    }
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

class PcreMatcher : public Matcher {
 public:
  PcreMatcher(const std::string& pattern, std::string_view what) : what_(what), pattern_(pattern) {
    if (pattern.size() > 16384)
      fail(ErrorKind::invalid_argument, "{}: a pattern of {} bytes, the limit is 16384", what, pattern.size());
    const std::string text = with_unicode_space(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    // Automatic callouts count the steps of a whole find(), which the limits of single matches do not bound.
    code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C,
                      &error, &offset, nullptr));
    if (!code_) {
      PCRE2_UCHAR message[200];
      pcre2_get_error_message(error, message, sizeof message);
      fail(ErrorKind::invalid_argument, "{}: pattern \"{}\" does not compile: {}", what, pattern.substr(0, 200),
           reinterpret_cast<const char*>(message));
    }
  }

  void find(std::string_view text, std::vector<Span>& out) const override {
    const std::unique_ptr<pcre2_match_context, FreeMatchContext> limits(pcre2_match_context_create(nullptr));
    const std::unique_ptr<pcre2_match_data, FreeMatchData> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    if (!limits || !match) fail(ErrorKind::out_of_memory, "{}: no memory to run a pattern", what_);
    uint64_t steps_left = 1'000'000 + 256 * static_cast<uint64_t>(text.size());
    pcre2_set_match_limit(limits.get(), 10'000'000);
    pcre2_set_depth_limit(limits.get(), 100'000);
    pcre2_set_heap_limit(limits.get(), 64 << 10);
    pcre2_set_callout(
        limits.get(),
        [](pcre2_callout_block*, void* left) { return --*static_cast<uint64_t*>(left) == 0 ? PCRE2_ERROR_CALLOUT : 0; },
        &steps_left);
    size_t gap = 0, at = 0;
    while (at <= text.size()) {
      const int rc = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, 0,
                                 match.get(), limits.get());
      if (rc == PCRE2_ERROR_NOMATCH) break;
      if (rc < 0)
        fail(ErrorKind::invalid_argument,
             "{}: pattern \"{}\" exceeds its limits on a text of {} bytes (PCRE2 error {})", what_,
             pattern_.substr(0, 200), text.size(), rc);
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.get());
      if (ends[1] <= ends[0]) {  // an empty match splits nothing
        at = ends[0] < text.size() ? ends[0] + unicode::decode(text, ends[0]).size : text.size() + 1;
        continue;
      }
      if (gap < ends[0]) out.push_back({gap, ends[0], false});
      out.push_back({ends[0], ends[1], true});
      at = gap = ends[1];
    }
    if (gap < text.size()) out.push_back({gap, text.size(), false});
  }

 private:
  std::string what_, pattern_;
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

}  // namespace

std::unique_ptr<const Matcher> literal_matcher(std::string pattern) {
  return std::make_unique<LiteralMatcher>(std::move(pattern));
}

std::unique_ptr<const Matcher> character_matcher(bool (*is_match)(uint32_t)) {
  return std::make_unique<CharacterMatcher>(is_match);
}

std::unique_ptr<const Matcher> pcre_matcher(const std::string& pattern, std::string_view what) {
  return std::make_unique<PcreMatcher>(pattern, what);
}

std::unique_ptr<const Matcher> regex_matcher(const std::string& pattern, std::string_view what) {
  if (std::unique_ptr<const Matcher> scanner = scanner_for(pattern)) return scanner;
  return pcre_matcher(pattern, what);
}

}  // namespace hearth::text
