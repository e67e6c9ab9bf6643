#include "text/tokenizer/unicode.h"

#include <utf8proc.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth::text::unicode {

CodePoint decode(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  text.remove_prefix(at);
  const Utf8Char c = utf8_decode(text);
  if (c.size > 0) return {c.value, c.size};
  return {uint32_t{kCodePoints} + lead, 1};
}

CodePoint decode_before(std::string_view text, size_t end) {
  for (size_t size = 1; size <= 4 && size <= end; ++size) {
    const CodePoint c = decode(text.substr(0, end), end - size);
    if (!c.broken() && c.size == size) return c;
  }
  return {kCodePoints + static_cast<unsigned char>(text[end - 1]), 1};
}

void append(std::string& out, uint32_t c) {
  if (c >= kCodePoints) out += static_cast<char>(c - kCodePoints);
  else append_utf8(out, c);
}

size_t count(std::string_view text) {
  size_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) at += decode(text, at).size;
  return n;
}

namespace {

bool is_white_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Other_Alphabetic outside of M: circled and squared Latin letters.
bool is_alphabetic_symbol(uint32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

uint16_t classify(uint32_t c) {
  uint16_t flags = 0;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: flags = kLetter | kUpper | kWord; break;
    case UTF8PROC_CATEGORY_LL: flags = kLetter | kLower | kWord; break;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: flags = kLetter | kUpper | kLower | kWord; break;
    case UTF8PROC_CATEGORY_MN: flags = kMark | kUpper | kLower | kNonspacing | kWord; break;
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: flags = kMark | kUpper | kLower | kWord; break;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: flags = kNumber | kWord; break;
    case UTF8PROC_CATEGORY_NO: flags = kNumber; break;
    case UTF8PROC_CATEGORY_PC: flags = kPunctuation | kWord; break;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: flags = kPunctuation; break;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: flags = kSymbol; break;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO: flags = kOther; break;
    default: break;
  }
  if (is_white_space(c)) flags |= kSpace;
  if (is_alphabetic_symbol(c) || c == 0x200C || c == 0x200D) flags |= kWord;
  return flags;
}

// A page of 256 characters is made when one of them is first asked for: most texts need a few of the 4352. Two threads
// may make the same one; the first keeps it. Pages live as long as the process.
struct ClassPage {
  std::array<uint16_t, 256> classes;
};

const ClassPage& class_page(uint32_t number) {
  static std::array<std::atomic<const ClassPage*>, kCodePoints / 256> pages{};
  std::atomic<const ClassPage*>& slot = pages[number];
  if (const ClassPage* page = slot.load(std::memory_order_acquire)) return *page;
  auto made = std::make_unique<ClassPage>();
  for (uint32_t i = 0; i < 256; ++i) made->classes[i] = classify(number * 256 + i);
  const ClassPage* known = nullptr;
  if (slot.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) known = made.release();
  return *known;
}

}  // namespace

uint16_t classes(uint32_t c) { return c < kCodePoints ? class_page(c / 256).classes[c % 256] : 0; }

bool is_bert_ideograph(uint32_t c) {
  // 2B920 where the block begins at 2B820: so it stands in the library that trained models were run with.
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

namespace {

void append_normalized(std::string& out, std::string_view stretch, Form form) {
  int options = UTF8PROC_STABLE;
  options |= form == Form::nfc || form == Form::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Form::nfkc || form == Form::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(stretch.data()),
                   static_cast<utf8proc_ssize_t>(stretch.size()), &result, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, std::free);
  if (size < 0)
    fail(ErrorKind::out_of_memory, "normalizing {} bytes of text: {}", stretch.size(), utf8proc_errmsg(size));
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
}

}  // namespace

std::string normalize(std::string_view text, Form form) {
  size_t ascii = 0;
  while (ascii < text.size() && static_cast<unsigned char>(text[ascii]) < 0x80) ++ascii;
  if (ascii == text.size()) return std::string(text);  // every form leaves ASCII as it is
  std::string out;
  out.reserve(text.size());
  size_t begin = 0, at = 0;
  const auto flush = [&] {
    if (at > begin) append_normalized(out, text.substr(begin, at - begin), form);
  };
  while (at < text.size()) {
    const CodePoint c = decode(text, at);
    if (!c.broken()) {
      at += c.size;
      continue;
    }
    flush();
    out += text[at];
    begin = ++at;
  }
  flush();
  return out;
}

void append_lower(std::string& out, uint32_t c) {
  if (c >= kCodePoints) append(out, c);
  else if (c == 0x130) out += "i\u0307";  // the one character whose lower case is two characters
  else append(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

size_t grapheme_end(std::string_view text, size_t at) {
  CodePoint last = decode(text, at);
  at += last.size;
  utf8proc_int32_t state = 0;
  while (at < text.size() && !last.broken()) {
    const CodePoint next = decode(text, at);
    if (next.broken() || utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                                          static_cast<utf8proc_int32_t>(next.value), &state))
      break;
    at += next.size;
    last = next;
  }
  return at;
}

}  // namespace hearth::text::unicode
