// Finds where a pattern matches in a text. Patterns of the known pre-tokenizers are recognised by their spelling and
// scanned by hand in linear time; others run on PCRE2.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text {

struct Span {
  size_t begin, end;  // bytes, never empty
  bool match;
};

// Immutable; any thread.
class Matcher {
 public:
  virtual ~Matcher() = default;
  // Appends the matches from left to right and the gaps between them, in order: together they tile the text.
  // Throws Error{invalid_argument} when a PCRE2 pattern exceeds its limits.
  virtual void find(std::string_view text, std::vector<Span>& out) const = 0;
};

std::unique_ptr<const Matcher> literal_matcher(std::string pattern);

// Each character of which `is_match` holds is a match of its own.
std::unique_ptr<const Matcher> character_matcher(bool (*is_match)(uint32_t code_point));

// Throws Error{invalid_argument} "<what>: pattern ... does not compile: ..." for a pattern that PCRE2 refuses.
std::unique_ptr<const Matcher> regex_matcher(const std::string& pattern, std::string_view what);

// The hand-written scanner of a pattern, null when the pattern is unknown. regex_matcher() asks this first.
std::unique_ptr<const Matcher> scanner_for(std::string_view pattern);

// Always PCRE2: what the scanners are tested against.
std::unique_ptr<const Matcher> pcre_matcher(const std::string& pattern, std::string_view what);

// Patterns of the known families, as their files spell them.
namespace patterns {
extern const std::string kGpt2, kLlama3, kQwen2, kQwen35, kMinicpm5, kTekken, kO200k, kDeepseek3, kThreeNumbers,
    kNumber, kNumbers, kCjkRuns, kThreeDigits, kNewlines, kFalconPunctuation, kNoContractions;
}  // namespace patterns

}  // namespace hearth::text
