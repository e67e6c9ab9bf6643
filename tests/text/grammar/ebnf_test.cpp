#include <string>
#include <vector>

#include "grammar_cases.h"

namespace hearth::text {
namespace {

void expect_texts(std::string_view grammar, const std::vector<std::string>& good, const std::vector<std::string>& bad) {
  const GrammarPtr g = compile_ebnf(grammar);
  for (const std::string& s : good) EXPECT_TRUE(accepts(g, s)) << grammar << " on " << s;
  for (const std::string& s : bad) EXPECT_FALSE(accepts(g, s)) << grammar << " on " << s;
}

TEST(GrammarEbnf, gbnf) {
  expect_texts("root ::= \"a\" | \"b\" \"c\"", {"a", "bc"}, {"b", "ac"});
  expect_texts(
      "# sums\nroot  ::= term ([-+*/] term)*\nterm ::= num | \"(\" ws root ws \")\"\nnum ::= [0-9]+\nws ::= [ \\t]*",
      {"1+2", "(1 )", "((12)*3)/4"}, {"1+", "()", "(1"});
  expect_texts("root ::= list\nlist ::=\n  \"x\" list |\n  \"y\"", {"y", "xxxy"}, {"x", ""});
  expect_texts("root ::= [^\"\\\\\\n]{2,3} \"\\\"\" .", {"ab\"\n", "éé\"x"}, {"a\"x", "abcd\"x"});
  expect_texts("root ::= \"\\u00e9\\x41\" r-2?\nr-2 ::= \"#\"", {"éA", "éA#"}, {"éA##"});
  expect_texts("root ::= \"a\"{2} \"b\"{1,} \"c\"{,2} \"d\"{0,9}", {"aab", "aabbbccddd"}, {"ab", "aaccc"});
  expect_texts("root ::= \"x\" (\"y\" | (\"z\" root)?) ", {"x", "xy", "xzx", "xzxzxy"}, {"xz"});
  expect_texts("root ::= a b\na ::= \"\" | \"a\"\nb ::= (a \"b\")*", {"", "a", "abab", "b"}, {"aa"});
}

TEST(GrammarEbnf, lark) {
  expect_texts("start: \"a\" | \"b\" \"c\"", {"a", "bc"}, {"b"});
  expect_texts("start: item (\",\" item)*  // a list\n?item: WORD\n    | \"[\" start \"]\"\nWORD: /[a-z]+/",
               {"a", "a,bc,[d,[e]]"}, {"a,", "[a", "A"});
  expect_texts("start: \"select\"i [\" all\"] D~3 \"x\"~1..2\nD: \"0\"..\"9\"", {"SELECT all123x", "select000xx"},
               {"select12x", "selec000x", "select123xxx"});
  expect_texts("start: /a\\/[/]b/ \"::=\"", {"a//b::="}, {"a/b"});
}

TEST(GrammarEbnf, ambiguous_grammars_keep_all_readings) {
  expect_texts("root ::= a root | \"\"\na ::= \"x\" | \"xx\" | \"xxx\"", {"", "x", std::string(300, 'x')}, {"xy"});
  expect_texts("root ::= \"(\" root \")\" root | \"\"", {"", "()", "(())()"}, {"(", "())"});
  // Two readings whose stacks differ in depth.
  expect_texts("root ::= p | q\np ::= \"a\" p \"b\" | \"c\"\nq ::= \"a\" q \"d\" | \"c\"", {"aacbb", "aacdd", "c"},
               {"aacbd"});
}

TEST(GrammarEbnf, what_it_cannot_hold_is_refused) {
  for (const auto& [grammar, part] : std::vector<std::pair<std::string, std::string>>{
           {"root ::= root \"a\" | \"b\"", "left recursion"},
           {"root ::= a root \"b\" | \"c\"\na ::= \"\"", "left recursion"},
           {"root ::= a \"x\"\na ::= b\nb ::= a | \"y\"", "left recursion"},
           {"root ::= x", "\"x\" is not defined"},
           {"other ::= \"x\"", "no rule \"root\""},
           {"root ::= \"a", "not closed"},
           {"root ::= (\"a\"", "not closed"},
           {"root ::= \"a\")", "closes no group"},
           {"root ::= \"a\"\nroot ::= \"b\"", "defined twice"},
           {"root ::= \"a\" root", "accepts no text"},
           {"root ::= (\"a\"+)+ \"b\"", "unbounded"},
           {"root ::= \"\\q\"", "unknown escape"},
           {"root ::= <think>", "token references"},
           {"start: \"a\"\n%ignore \" \"", "directives"},
           {"start: t{\"a\"}", "templates"},
           {"start: \"a\" -> b", "aliases"},
           {"start: /a(?=b)/", "look-around"},
           {"", "no rule"},
           {"?", "a rule is expected"}})
    expect_refused(part, [&] { compile_ebnf(grammar); });
  expect_refused("line 3", [] { compile_ebnf("root ::= \"a\"\n\nx ::= \"b\" ]"); });
}

}  // namespace
}  // namespace hearth::text
