#include <string>
#include <vector>

#include "grammar_cases.h"

namespace hearth::text {
namespace {

void expect_texts(std::string_view pattern, const std::vector<std::string>& good, const std::vector<std::string>& bad) {
  const GrammarPtr g = compile_regex(pattern);
  for (const std::string& s : good) EXPECT_TRUE(accepts(g, s)) << pattern << " on " << s;
  for (const std::string& s : bad) EXPECT_FALSE(accepts(g, s)) << pattern << " on " << s;
}

TEST(GrammarRegex, whole_texts_match) {
  expect_texts("abc", {"abc"}, {"", "ab", "abcd", "xabc"});
  expect_texts("a|bc|", {"a", "bc", ""}, {"b", "abc"});
  expect_texts("(ab)*c+d?", {"c", "ababccd", "abc"}, {"ab", "abd", "cdd"});
  expect_texts("[a-c-]{2,3}", {"a-", "abc", "---"}, {"a", "abca", "ad"});
  expect_texts("x{0}y{2}", {"yy"}, {"xyy", "y"});
  expect_texts("a{2,}", {"aa", "aaaaaaaaaaaaaaaa"}, {"a"});
  expect_texts("^(?:a|b)$", {"a", "b"}, {"ab", ""});
  expect_texts("^a$|^b$", {"a", "b"}, {"ab"});
  expect_texts("(?<year>[0-9]{4})-(?P<m>[0-9]{2})", {"2024-01"}, {"2024-1"});
  expect_texts("a*?b+?", {"b", "aab"}, {"a"});
  expect_texts(R"(\(\[\{\.\*\x41\u0042\u{43}\t)", {"([{.*ABC\t"}, {"([{.*abc\t"});
  expect_texts("a{1,b}", {"a{1,b}"}, {"a"});  // no repeat: as it stands
}

TEST(GrammarRegex, classes_are_of_unicode) {
  expect_texts(".", {"a", "é", "日", "😀", "\t"}, {"\n", "", "ab", "\xff", "\xc3"});
  expect_texts("\\w+", {"abc_09", "über", "日本"}, {"a b", "-"});
  expect_texts("\\d", {"7", "\u0663"}, {"a", "77"});
  expect_texts("\\s", {" ", "\u00a0", "\n"}, {"a"});
  expect_texts("[^\\d\\s]", {"a", "é"}, {"1", " "});
  expect_texts("\\p{Lu}\\p{L}*", {"Äb", "B"}, {"b"});
  expect_texts("[α-ω]+", {"αβγ"}, {"abc", "Α"});
  expect_texts("[^a]", {"b", "é", "\U0010FFFF"}, {"a", "\xed\xa0\x80"});  // a surrogate is no character
}

TEST(GrammarRegex, counted_repeats_have_exact_ends) {
  expect_texts("[a-z]{3,10}", {"abc", "abcdefghij"}, {"ab", "abcdefghijk"});
  expect_texts(".{2,20}foo", {"xxfoo", "foofoo", "éééfoo", std::string(20, 'f') + "foo"},
               {"xfoo", "xxfo", std::string(21, 'f') + "foo"});
  expect_texts("(ab|c){2,9}", {"abc", "cc", "ababababababababab"}, {"c", "cccccccccc"});
  expect_texts("(a?b?){0,20}c", {"c", "abc", "bac", std::string(20, 'b') + "c"}, {"", "ab"});
  expect_texts("(a|b)*a(a|b){20}", {std::string(21, 'a'), "bba" + std::string(20, 'b')}, {std::string(21, 'b')});
}

TEST(GrammarRegex, what_it_cannot_hold_is_refused) {
  for (const auto& [pattern, part] : std::vector<std::pair<std::string, std::string>>{
           {"(?=a)b", "look-around"},   {"(?<!a)b", "look-around"}, {"(a)\\1", "back-references"},
           {"\\bword", "anchors"},      {"a++", "possessive"},      {"(?i)a", "kind of group"},
           {"(a+)+b", "unbounded"},     {"((a*))*", "unbounded"},   {"a**", "repeat of a repeat"},
           {"*a", "nothing stands"},    {"(a", "not closed"},       {"a)", "closes no group"},
           {"[a", "not closed"},        {"[]", "empty class"},      {"[z-a]", "backwards"},
           {"a{3,2}", "at least 3"},    {"\\q", "unknown escape"},  {"\\u12", "hexadecimal"},
           {"\\p{Xx}", "category"},     {"a^b", "stands behind"},   {"a$b", "stands before"},
           {"a{1000000}", "more than"}, {"\xff", "UTF-8"},          {"\\ud800", "no character"},
           {"[[:alpha:]]", "[:name:]"}, {"\\", "too early"},        {"(a{1000}){1000}{1000}", "repeat of a repeat"}})
    expect_refused(part, [&] { compile_regex(pattern); });
}

}  // namespace
}  // namespace hearth::text
