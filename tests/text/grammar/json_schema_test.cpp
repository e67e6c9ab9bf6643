#include <string>
#include <vector>

#include "grammar_cases.h"

namespace hearth::text {
namespace {

void expect_texts(std::string_view schema, const std::vector<std::string>& good, const std::vector<std::string>& bad,
                  const JsonOptions& options = {}) {
  const GrammarPtr g = schema_grammar(schema, options);
  for (const std::string& s : good) EXPECT_TRUE(accepts(g, s)) << schema << " on " << s;
  for (const std::string& s : bad) EXPECT_FALSE(accepts(g, s)) << schema << " on " << s;
}

TEST(GrammarSchema, types) {
  expect_texts(R"({"type":"null"})", {"null"}, {"0", ""});
  expect_texts(R"({"type":"boolean"})", {"true", "false"}, {"True"});
  expect_texts(R"({"type":"integer"})", {"0", "-12", "100"}, {"01", "1.0", "+1", ""});
  expect_texts(R"({"type":"number"})", {"0", "-1.50", "1e5", "2E-3"}, {".5", "1.", "1e"});
  expect_texts(R"({"type":["integer","string"]})", {"1", "\"x\""}, {"1.5", "null"});
  expect_texts(R"({"type":"string","nullable":true})", {"null", "\"\""}, {"1"});
  expect_texts("true", {"1", "[]", "{\"a\": [1, {}]}", "\"x\"", "null"}, {"[1,]", "{,}", "{\"a\"}"});
  expect_texts(R"({"description":"anything"})", {"1", "[[]]"}, {"nul"});
}

// Nor is a declared name an additional one, however it is spelled.
TEST(GrammarSchema, a_declared_member_comes_once) {
  expect_texts(R"({"properties":{"a":{},"b c":{},"q\"":{}},"required":["z"],"type":"object"})",
               {R"({"z":1})", R"({"a":1,"z":2,"y":3})", R"({"q\"":1,"z":2,"A":3,"zz":4})"},
               {R"({"a":1,"z":2,"a":3})", R"({"z":2,"a":3})", R"({"z":1,"z":2})", R"({"z":1,"b c":2})",
                R"({"z":1,"q\"":2})", R"({"z":1,"\u0061":2})", R"({"z":1,"\u007a":2})", R"({"z":1,"\u007A":2})",
                R"({"z":1,"q\u0022":2})", R"({"z":1,"b\u0020c":2})", R"({"\u0061":1,"z":2})"});
  expect_texts(R"({"type":"object","properties":{"ab":{}},"patternProperties":{"^a":{"type":"null"}}})",
               {R"({"ab":null,"ac":null,"x":2})"}, {R"({"ab":null,"ab":null})", R"({"ac":null,"ab":null})"});
  expect_texts(R"({"type":"object","properties":{"a":{}},"anyOf":[{"properties":{"b":{}},"required":["b"]},
                                                                  {"properties":{"c":{}},"required":["c"]}]})",
               {R"({"a":1,"b":2,"d":3})", R"({"a":1,"c":2})"},
               {R"({"a":1,"b":2,"b":3})", R"({"a":1,"b":2,"a":3})", R"({"c":2,"c":3})"});
  expect_texts(R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"type":"object"})",
               {R"({"a":1,"b":2,"c":3})"}, {R"({"a":1,"b":2,"a":3})", R"({"b":2,"a":3})"});
  // What an automaton cannot tell (grammar.h): other names again.
  expect_texts(R"({"type":"object","properties":{"a":{}}})", {R"({"a":1,"x":2,"x":3})"}, {});
  expect_texts("true", {R"({"x":2,"x":3})"}, {});
}

TEST(GrammarSchema, strings) {
  expect_texts(R"({"type":"string"})", {R"("a\n\u00e9\"\/")", R"("\ud83d\ude00")", "\"日本\""},
               {"\"a\nb\"", R"("\ud83d")", R"("\x")", "\"\xff\"", "\"a"});
  expect_texts(R"({"type":"string","minLength":2,"maxLength":3})", {"\"ab\"", "\"日本語\"", R"("a\n\ud83d\ude00")"},
               {"\"a\"", "\"abcd\"", R"("\n")"});
  expect_texts(R"({"type":"string","maxLength":0})", {"\"\""}, {"\"a\""});
  expect_texts(R"({"type":"string","minLength":6})", {"\"abcdef\"", "\"abcdefghi\""}, {"\"abcde\""});
  expect_texts(R"({"type":"string","pattern":"^[a-z]+$","maxLength":8})", {"\"abc\"", "\"abcdefgh\""},
               {"\"\"", "\"abcdefghi\"", "\"A\""});
  expect_texts(R"({"type":"string","pattern":"b+"})", {"\"abba\"", "\"b\"", "\"\\nb\""}, {"\"aca\""});
  expect_texts(R"({"type":"string","pattern":"^\"\\\\$"})", {R"("\"\\")"}, {R"("\u0022\\")"});
  expect_texts(R"({"type":"string","pattern":"^(a|bb)*$","minLength":3,"maxLength":4})",
               {"\"aaa\"", "\"bbbb\"", "\"abba\""}, {"\"aa\"", "\"bbb\"", "\"bbbbb\""});
}

TEST(GrammarSchema, formats) {
  expect_texts(R"({"type":"string","format":"date"})", {"\"2024-02-29\"", "\"1999-12-31\""},
               {"\"2023-02-29\"", "\"2024-04-31\"", "\"0000-01-01\"", "\"2024-1-1\""});
  expect_texts(R"({"type":"string","format":"time"})", {"\"23:59:59Z\"", "\"00:00:00.25+02:00\""},
               {"\"24:00:00Z\"", "\"10:00\""});
  expect_texts(R"({"type":"string","format":"date-time"})", {"\"2024-02-29T10:00:00Z\""}, {"\"2024-02-29 10:00:00Z\""});
  expect_texts(R"({"type":"string","format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""},
               {"\"123e4567e89b12d3a456426614174000\""});
  expect_texts(R"({"type":"string","format":"email"})", {"\"a.b+c@example.org\""},
               {"\"a@\"", "\"a@b..c\"", "\".a@b\""});
  expect_texts(R"({"type":"string","format":"ipv4"})", {"\"255.0.10.1\""},
               {"\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""});
  expect_texts(R"({"type":"string","format":"ipv6"})",
               {"\"::\"", "\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::1:2\"", "\"::ffff:1.2.3.4\"", "\"1::\"",
                "\"1:2:3:4:5:6:7::\""},
               {"\"1:2\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8:9\"", "\":1\"", "\"12345::\""});
  expect_texts(R"({"type":"string","format":"uri"})",
               {"\"https://a.b/c?d=e#f\"", "\"mailto:a@b\"", "\"http://[::1]:80/\""},
               {"\"/a/b\"", "\"http://a b\"", "\"://x\""});
  expect_texts(R"({"type":"string","format":"not-known"})", {"\"anything\""}, {"1"});
}

TEST(GrammarSchema, numbers_within_bounds) {
  const auto value_in = [](double low, double high, int step, bool integer) {
    std::vector<std::string> good, bad;
    for (int n = -2500; n <= 2500; n += step) {
      const double v = n / 10.0;
      if (integer && n % 10 != 0) continue;
      std::string text = integer ? std::to_string(n / 10) : fmt::format("{:.1f}", v);
      if (text == "-0.0") continue;
      (v >= low && v <= high ? good : bad).push_back(text);
    }
    expect_texts(fmt::format(R"({{"type":"{}","minimum":{},"maximum":{}}})", integer ? "integer" : "number", low, high),
                 good, bad);
  };
  value_in(-12.3, 45.6, 1, false);
  value_in(3, 207, 1, true);
  value_in(-207, -3, 1, true);
  value_in(0, 9, 1, true);
  value_in(-0.5, 0.5, 1, false);
  value_in(99.9, 100.1, 1, false);
  expect_texts(R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})", {"0.5", "0.001", "0.999999"},
               {"0", "1", "0.0", "-0.1", "1.0"});
  expect_texts(R"({"type":"number","minimum":0.25})", {"0.25", "0.250", "1", "123456789012345678901234567890"},
               {"0.2499", "0", "-1"});
  expect_texts(R"({"type":"integer","multipleOf":7,"minimum":-20})", {"-14", "0", "7", "700"},
               {"-21", "1", "8", "7.0"});
  expect_texts(R"({"type":"integer","minimum":5,"exclusiveMinimum":true})", {"6"}, {"5"});
  expect_texts(R"({"type":"number","maximum":-1e3})", {"-1000", "-1000.5"}, {"-999.9", "0"});
}

TEST(GrammarSchema, enum_and_const) {
  expect_texts(R"({"enum":["a","b\n",1,2.5,null,true]})", {"\"a\"", R"("b\n")", "1", "2.5", "null", "true"},
               {"\"c\"", "2"});
  expect_texts(R"({"const":{"x":[1,"y"],"z":{}}})", {R"({"x": [1, "y"], "z": {}})", R"({"x":[1,"y"],"z":{}})"},
               {R"({"z":{},"x":[1,"y"]})"});
  expect_texts(R"({"enum":["a",1,null],"type":["string","null"]})", {"\"a\"", "null"}, {"1"});
  expect_texts(R"({"enum":[1,5,9,"abc"],"minimum":4,"minLength":4})", {"5", "9"}, {"1", "\"abc\""});
  expect_texts(R"({"const":null})", {"null"}, {"0"});
  expect_texts(R"({"enum":["ab","abc","b"],"pattern":"^a","allOf":[{"const":"abc"}]})", {"\"abc\""},
               {"\"ab\"", "\"b\""});
}

TEST(GrammarSchema, objects) {
  const std::string closed =
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"null"}},
          "required":["b"],"additionalProperties":false})";
  expect_texts(closed,
               {R"({"b":"x"})", R"({"a": 1, "b": "x", "c": null})", R"({"a":1,"b":""})", R"({"b":"","c":null})"},
               {"{}", R"({"a":1})", R"({"b":"x","a":1})", R"({"b":"x","d":1})", R"({"b":"x",})", R"({ "b":"x"})",
                R"({"b":  "x"})", R"({"b":"x" })"});
  expect_texts(R"({"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}})",
               {"{}", R"({"a":"any","x":1,"y":2})", R"({"ab":1})", R"({"":1})"},
               {R"({"x":"s"})", R"({"x":1,"a":2})", R"({"\u0061":1})"});
  expect_texts(R"({"type":"object","required":["z"]})", {R"({"z":1})", R"({"z":1,"y":[]})"}, {"{}", R"({"y":1})"});
  expect_texts(
      R"({"type":"object","properties":{"s_0":{"type":"integer"}},"patternProperties":{"^s_":{"minimum":5},"^t":{"type":"null"}},
                   "additionalProperties":false})",
      {R"({"s_0":7})", R"({"s_1":6,"t":null})", "{}"}, {R"({"s_0":3})", R"({"s_1":1})", R"({"u":1})", R"({"t":1})"});
  expect_texts(R"({"properties":{"a":false,"b":{"type":"null"}}})", {R"({"b":null})", R"({"c":1})"},
               {R"({"a":1})", "1"});
  expect_texts(closed, {"{ \"b\" : \"x\" ,\n\"c\":null\t}"}, {"{\"b\" \"x\"}"}, {.any_whitespace = true});
}

TEST(GrammarSchema, white_space_is_free_between_tokens_up_to_a_bound) {
  const JsonOptions free{.any_whitespace = true};
  const std::string most(kWhitespaceMax, ' ');
  // S: where white space may stand.
  const auto texts = [](std::string pattern, const std::string& space) {
    for (size_t at; (at = pattern.find('S')) != std::string::npos;) pattern.replace(at, 1, space);
    return pattern;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"type":"array","items":{"type":"integer"}})", "[S1S,S2S]"},
      {R"({"type":"array","items":{"type":"integer"}})", "[S]"},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":false})", "[S1S,StrueS]"},
      {R"({"type":"array","prefixItems":[{"type":"integer"}]})", "[S1S,SnullS,S{S}S]"},
      {R"({"type":"array","maxItems":0})", "[S]"},
      {R"({"type":"object"})", R"({S"a"S:S[S]S,S"b"S:S{S"c"S:S1S}S})"},
      {R"({"type":"object"})", "{S}"},
      {R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["b"],"additionalProperties":false})",
       R"({S"a"S:SnullS,S"b"S:SnullS})"},
      {R"({"const":{"a":[1,[],{}],"b":{}}})", R"({S"a"S:S[S1S,S[S]S,S{S}S]S,S"b"S:S{S}S})"},
  };
  for (const auto& [schema, pattern] : cases)
    expect_texts(schema, {texts(pattern, ""), texts(pattern, " "), texts(pattern, "\r\n\t"), texts(pattern, most)},
                 {texts(pattern, most + " "), " " + texts(pattern, ""), texts(pattern, "") + " ", texts(pattern, "\f")},
                 free);
  expect_texts(R"({"type":"integer"})", {"12"}, {"1 2", " 12", "12 "}, free);
  expect_texts(R"({"type":"string"})", {"\" a \""}, {"\"a\" ", "\"\n\""}, free);
}

TEST(GrammarSchema, arrays) {
  expect_texts(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})", {"[1]", "[1, 2,3]"},
               {"[]", "[1,2,3,4]", "[\"a\"]", "[1,]", "[ 1]"});
  expect_texts(R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
               {"[]", "[1]", "[1, \"a\"]"}, {"[\"a\"]", "[1,\"a\",2]"});
  expect_texts(R"({"type":"array","prefixItems":[{"const":1}],"items":{"const":2},"minItems":2})", {"[1,2]", "[1,2,2]"},
               {"[1]", "[2,2]", "[1,1]"});
  expect_texts(R"({"type":"array","items":[{"const":1}],"additionalItems":false})", {"[1]", "[]"}, {"[1,1]"});
  expect_texts(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"});
  expect_texts(R"({"type":"array","items":{"type":"array","items":{"const":1},"minItems":20,"maxItems":65536}})",
               {"[]", "[[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]]"}, {"[[1,1]]"});
}

TEST(GrammarSchema, combinations) {
  expect_texts(R"({"anyOf":[{"type":"integer","minimum":10},{"type":"string","maxLength":1}]})", {"10", "\"a\""},
               {"9", "\"ab\""});
  expect_texts(R"({"type":"integer","anyOf":[{"minimum":10},{"maximum":-10}]})", {"10", "-10"}, {"0", "\"a\""});
  expect_texts(
      R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"],"additionalProperties":false},
                            {"type":"object","properties":{"k":{"const":"b"},"y":{"type":"null"}},"required":["k","y"],"additionalProperties":false}]})",
      {R"({"k":"a","x":1})", R"({"k":"b","y":null})"}, {R"({"k":"a","y":null})"});
  expect_texts(R"({"oneOf":[{"type":"integer","maximum":3},{"type":"integer","minimum":4},{"const":"x"}]})",
               {"3", "4", "\"x\""}, {"\"y\""});
  expect_texts(R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
                            {"properties":{"b":{"type":"string"},"a":{"minimum":3}},"additionalProperties":false}]})",
               {R"({"a":3,"b":""})", R"({"a":5})"}, {R"({"a":2})", R"({"b":""})", R"({"a":3,"c":1})"});
  expect_texts(R"({"$defs":{"s":{"type":"string"}},"allOf":[{"$ref":"#/$defs/s"}],"minLength":2})", {"\"ab\""},
               {"\"a\"", "12"});
}

TEST(GrammarSchema, references_recurse) {
  expect_texts(
      R"({"$ref":"#/definitions/tree","definitions":{"tree":{"type":"object","properties":{"v":{"type":"integer"},
                  "kids":{"type":"array","items":{"$ref":"#/definitions/tree"}}},"required":["v"],"additionalProperties":false}}})",
      {R"({"v":1})", R"({"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]})"}, {R"({"kids":[]})", R"({"v":1,"kids":[1]})"});
  expect_texts(R"({"type":["array","null"],"items":{"$ref":"#"}})", {"null", "[]", "[[null],[[]]]"}, {"[1]"});
  expect_texts(
      R"({"properties":{"a~b/c":{"type":"null"},"d":{"$ref":"#/properties/a~0b~1c"}},"additionalProperties":false})",
      {R"({"d":null})"}, {R"({"d":1})"});
}

TEST(GrammarSchema, unsupported_keywords_are_named_with_their_path) {
  for (const auto& [schema, part] : std::vector<std::pair<std::string, std::string>>{
           {R"({"not":{}})", "\"not\" at $.not"},
           {R"({"properties":{"a":{"type":"array","items":{"uniqueItems":true}}}})",
            "\"uniqueItems\" at $.properties.a.items.uniqueItems"},
           {R"({"anyOf":[{"type":"null"},{"if":{}}]})", "\"if\" at $.anyOf[1].if"},
           {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "branches 0 and 1"},
           {R"({"$ref":"other.json"})", "$ref"},
           {R"({"$ref":"#/$defs/x"})", "leads nowhere"},
           {R"({"$ref":"#"})", "back to itself"},
           {R"({"type":"strin"})", "unknown type"},
           {R"j({"type":"string","pattern":"(?=a)"})j", "\"pattern\" at $"},
           {R"({"type":"number","multipleOf":0.1})", "multipleOf"},
           {R"({"type":"string","maxLength":-1})", "maxLength"},
           {R"({"type":"integer","minimum":"3"})", "expected a number"},
           {R"({"type":"integer","nullable":"no"})", "$.nullable: expected a boolean, found a string"},
           {R"({"patternProperties":{"^a":{},"b$":{}}})", "share names"},
           {R"({"enum":[]})", "accepts no text"},
           {R"({"type":"integer","minimum":5,"maximum":4})", "accepts no text"},
           {R"({"properties":{"a":false},"required":["a"]})", "accepts no text"},
           {R"(false)", "accepts no text"},
           {R"(3)", "expected an object"},
           {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", "left recursion"},
           {R"({"properties":{"n":{"$ref":"#"}},"required":["n"]})", "accepts no text"}})
    expect_refused(part, [&] { schema_grammar(schema); });
}

TEST(GrammarSchema, any_object_is_an_object) {
  const GrammarPtr g = compile_json_object();
  EXPECT_TRUE(accepts(g, R"({"a": [1, {"b": null}], "c": ""})"));
  EXPECT_FALSE(accepts(g, "[]"));
  EXPECT_FALSE(accepts(g, R"({"a": 1,})"));
}

}  // namespace
}  // namespace hearth::text
