// Characters of a text whose broken bytes stay (base/utf8.h reads the others), and the character classes that
// tokenizers split by. Classes come from utf8proc (Unicode 15) and are kept by pages, each made at first use. Any
// thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::text::unicode {

constexpr uint32_t kCodePoints = 0x110000;  // values from here up are broken bytes: kCodePoints + byte

struct CodePoint {
  uint32_t value;
  uint32_t size;  // bytes, 1 for a broken byte
  bool broken() const { return value >= kCodePoints; }
};

// The character that begins at text[at], at < text.size(). Overlong forms, surrogates and cut sequences are broken.
CodePoint decode(std::string_view text, size_t at);
// The character that ends before `end`, end > 0.
CodePoint decode_before(std::string_view text, size_t end);
void append(std::string& out, uint32_t code_point);  // a broken byte as it is
size_t count(std::string_view text);                 // characters; a broken byte counts as one

enum Class : uint16_t {
  kLetter = 1 << 0,       // L
  kMark = 1 << 1,         // M
  kNumber = 1 << 2,       // N
  kPunctuation = 1 << 3,  // P
  kSymbol = 1 << 4,       // S
  kSpace = 1 << 5,        // White_Space
  kUpper = 1 << 6,        // Lu Lt Lm Lo M: the first half of a cased word
  kLower = 1 << 7,        // Ll Lm Lo M: its second half
  kOther = 1 << 8,        // Cc, Cf, Cs, Co
  kNonspacing = 1 << 9,   // Mn
  kWord = 1 << 10,        // \w of UTS 18: Alphabetic, M, Nd, Pc, Join_Control
};

// Classes of a character; 0 for a broken byte.
uint16_t classes(uint32_t code_point);

inline bool is_ascii_punctuation(uint32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// The CJK ideograph blocks that BERT sets apart.
bool is_bert_ideograph(uint32_t code_point);

enum class Form { nfc, nfd, nfkc, nfkd };
// Normalization form of each valid stretch; broken bytes stay.
std::string normalize(std::string_view text, Form form);

// Full lower case of one character, without context (so no final sigma).
void append_lower(std::string& out, uint32_t code_point);

// End of the grapheme cluster (UAX 29) that begins at text[at].
size_t grapheme_end(std::string_view text, size_t at);

}  // namespace hearth::text::unicode
