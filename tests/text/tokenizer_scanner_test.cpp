// The hand-written scanners against PCRE2 on the patterns that they stand for, and what they promise about work.
#include <pthread.h>

#include <functional>
#include <random>

#include "base/utf8.h"
#include "support/scale.h"
#include "text/tokenizer/matcher.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer_tables.h"

namespace hearth::text {
namespace {

const std::vector<const std::string*> kPatterns = {
    &patterns::kGpt2,        &patterns::kLlama3,       &patterns::kQwen2,          &patterns::kQwen35,
    &patterns::kMinicpm5,    &patterns::kTekken,       &patterns::kO200k,          &patterns::kDeepseek3,
    &patterns::kNumber,      &patterns::kThreeNumbers, &patterns::kNumbers,        &patterns::kCjkRuns,
    &patterns::kThreeDigits, &patterns::kNewlines,     &patterns::kNoContractions, &patterns::kFalconPunctuation};

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kParts = {
      "a",      "Z",        "'s",     "'LL",    "'\u017f", "9", "\u0663", "\u00bd", " ",      " ",      "\t",
      "\n",     "\r\n",     "\u00a0", "\u3000", "é",       "ß", "İ",      "\u01c5", "\u02b0", "中",     "の",
      "\u0301", "\u093e",   "\u20dd", "😀",     "\u200d",  "!", "/",      "\u2014", "$",      "\u0085", "\u180e",
      "\xff",   "\xe4\xb8", "\u0378", "",       "_",       "[", "]",      "^"};
  std::string out;
  for (size_t n = random() % 24; n > 0; --n) out += kParts[random() % kParts.size()];
  return out;
}

TEST(Scanners, agree_with_pcre2) {
  std::mt19937 random(1);
  for (const std::string* pattern : kPatterns) {
    const auto scanner = scanner_for(*pattern), pcre = pcre_matcher(*pattern, "test");
    ASSERT_NE(scanner, nullptr) << *pattern;
    for (int i = 0; i < 3000; ++i) {
      const std::string text = random_text(random);
      // PCRE2 folds by simple case folding alone and does not match across broken bytes: \s and [^...] differ there.
      if (!is_utf8(text)) continue;
      std::vector<Span> got, want;
      scanner->find(text, got);
      pcre->find(text, want);
      ASSERT_EQ(got.size(), want.size()) << *pattern << " on " << testing::PrintToString(text);
      for (size_t k = 0; k < got.size(); ++k) {
        ASSERT_EQ(got[k].begin, want[k].begin) << *pattern << " on " << testing::PrintToString(text);
        ASSERT_EQ(got[k].end, want[k].end) << *pattern << " on " << testing::PrintToString(text);
        ASSERT_EQ(got[k].match, want[k].match) << *pattern << " on " << testing::PrintToString(text);
      }
    }
  }
}

TEST(Scanners, spans_tile_broken_text) {
  std::mt19937 random(2);
  for (const std::string* pattern : kPatterns)
    for (int i = 0; i < 500; ++i) {
      const std::string text = random_text(random);
      std::vector<Span> spans;
      scanner_for(*pattern)->find(text, spans);
      size_t at = 0;
      for (const Span& s : spans) {
        ASSERT_EQ(s.begin, at);
        ASSERT_LT(s.begin, s.end);
        at = s.end;
      }
      ASSERT_EQ(at, text.size());
    }
}

TEST(Scanners, line_ends_may_stand_in_the_pattern) {
  std::string raw = patterns::kDeepseek3;
  for (size_t at; (at = raw.find("\\r\\n")) != std::string::npos;) raw.replace(at, 4, "\r\n");
  EXPECT_NE(scanner_for(raw), nullptr);
  EXPECT_EQ(scanner_for("[a-z]+"), nullptr);
}

TEST(Pcre, runaway_patterns_end_in_an_error) {
  const auto matcher = pcre_matcher("(a|aa)+$", "test");
  std::vector<Span> spans;
  expect_error(ErrorKind::invalid_argument, "exceeds its limits",
               [&] { matcher->find(std::string(3000, 'a') + '!', spans); });
  expect_error(ErrorKind::invalid_argument, "does not compile", [] { pcre_matcher("(", "test"); });
}

// Runs f on a thread with a stack of 256 KiB.
void on_small_stack(std::function<void()> f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  const auto run = [](void* p) -> void* {
    (*static_cast<std::function<void()>*>(p))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string repeated(std::string_view unit, size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

std::string split_json(const std::string& pattern) {
  std::string escaped;
  for (const char c : pattern) (c == '\\' || c == '"' ? escaped += '\\' : escaped) += c;
  return R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ")" + escaped +
         R"("}, "behavior": "Isolated"}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
}

// R-14. Quadratic work on 1 MiB (a tenth where sanitized) would take minutes, more than the test may run.
TEST(LargeTexts, R14_one_unit_a_mebibyte_long_on_a_small_stack) {
  std::vector<Tokenizer> tokenizers;
  std::vector<std::pair<std::string, std::string>> doubling;
  for (std::string a = "a"; a.size() < 64; a += a) doubling.push_back({a, a});
  for (const std::string* pattern : kPatterns)
    tokenizers.emplace_back(parse_tokenizer_json(byte_level_json(doubling, "", split_json(*pattern)), "test.json"));
  std::vector<std::pair<std::string, float>> pieces = {{"\u2581", -50}};
  float score = 0;
  for (std::string a = "a"; a.size() < 64; a += a) pieces.push_back({a, score -= 1});
  tokenizers.emplace_back(tables_from_gguf(sentencepiece_gguf(pieces), "test.gguf"));
  GgufTokenizer unigram = sentencepiece_gguf(pieces);
  unigram.model = "t5";
  tokenizers.emplace_back(tables_from_gguf(unigram, "test.gguf"));
  tokenizers.emplace_back(tables_from_vocab_txt("[UNK]\n[CLS]\n[SEP]\na\n##a\n", "vocab.txt"));
  on_small_stack([&] {
    for (const Tokenizer& t : tokenizers)
      for (const char* unit : {"a", "A", "😀", "\r\n", " ", "中", "\u0301", "9", "!", "a 😀\r\n中", "\xff"}) {
        const std::string text = repeated(unit, static_cast<size_t>(test::scaled(1 << 20)));
        const std::vector<int32_t> ids = t.encode(text, {});
        ASSERT_LE(ids.size(), text.size() + 3);
        ASSERT_FALSE(t.decode(ids, false).empty());
      }
  });
}

}  // namespace
}  // namespace hearth::text
