#include "text/tools/value_reader.h"

#include <gtest/gtest.h>

#include "text/tools/xml_value.h"

namespace hearth::text::tools {
namespace {

// The JSON that a text says; "failed" when it says none; what stands behind the value is shown behind " | ".
std::string read(std::string_view text, Syntax syntax = Syntax::json) {
  ArgumentWriter writer;
  ValueReader reader(writer, syntax);
  for (size_t i = 0; i < text.size(); ++i) {
    const Step step = reader.push(text[i]);
    if (step == Step::failed) return "failed";
    if (step == Step::more) continue;
    const std::string_view rest = text.substr(step == Step::done ? i + 1 : i);
    return writer.written() + (rest.empty() ? "" : " | " + std::string(rest));
  }
  return reader.finish() == Step::done ? writer.written() : "failed";
}

TEST(ValueReader, writes_json_in_one_form) {
  EXPECT_EQ(read(R"( {"a":[1,2.0 ,-3e+2,true , false,null],"b":{},"c":[],"d":"x"} )"),
            R"({"a": [1, 2.0, -3e+2, true, false, null], "b": {}, "c": [], "d": "x"} |  )");
  EXPECT_EQ(read(R"("\u0041\/\"\\\b\f\n\r\t\u00e9\u20AC\ud83d\ude00\u0001")"), R"("A/\"\\\b\f\n\r\té€😀\u0001")");
  EXPECT_EQ(read("\"raw\nbreak\tand \x7f\""), "\"raw\\nbreak\\tand \x7f\"");
  EXPECT_EQ(read("12,"), "12 | ,");
  EXPECT_EQ(read("null}"), "null | }");
  EXPECT_EQ(read("12"), "12");
}

TEST(ValueReader, lone_surrogates_become_replacements) {
  EXPECT_EQ(read(R"("\ud83d")"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(read(R"("\ude00\ud83dx\ud83d\ud83d\ude00\ud83d\n")"),
            "\"\xef\xbf\xbd\xef\xbf\xbdx\xef\xbf\xbd😀\xef\xbf\xbd\\n\"");
  EXPECT_EQ(read(R"({"\ud83d": 1})"), "{\"\xef\xbf\xbd\": 1}");
}

TEST(ValueReader, refuses_what_is_no_json) {
  for (const char* text : {"",
                           "{",
                           "[",
                           "[1,]",
                           "{\"a\":1,}",
                           "{,}",
                           "{a:1}",
                           "{\"a\" 1}",
                           "{\"a\":}",
                           "[1 2]",
                           "'a'",
                           "True",
                           "None",
                           "01",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "--1",
                           "1e999",
                           "NaN",
                           "nul",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "]",
                           "}",
                           "{\"a\":1,\"a\":2}",
                           "{\"a\":1,\"\\u0061\":2}",
                           "[1}",
                           "{\"a\":1]",
                           "<|\"|>a<|\"|>"})
    EXPECT_EQ(read(text), "failed") << text;
  const std::string deep(65, '['), allowed(64, '[');
  EXPECT_EQ(read(deep + std::string(65, ']')), "failed");
  EXPECT_EQ(read(allowed + std::string(64, ']')), allowed + std::string(64, ']'));
}

TEST(ValueReader, takes_what_python_prints) {
  EXPECT_EQ(read(R"({'a': True, "b": [None, False, 'it\'s "x"']})", Syntax::python),
            R"({"a": true, "b": [null, false, "it's \"x\""]})");
  for (const char* text : {"(1, 2)", "{1, 2}", "'a", "nan", "{a: 1}"})
    EXPECT_EQ(read(text, Syntax::python), "failed") << text;
}

TEST(ValueReader, takes_gemma_notation) {
  EXPECT_EQ(read("{a:<|\"|>x \"y\" <|\"| <<|\"|>,b_c : [1,{d:<|\"|><|\"|>}] ,<|\"|>e:f<|\"|>:null}", Syntax::gemma),
            R"({"a": "x \"y\" <|\"| <", "b_c": [1, {"d": ""}], "e:f": null})");
  EXPECT_EQ(read("{}", Syntax::gemma), "{}");
  for (const char* text : {"{a:b}", "{a:<|x", "{a}", "{:1}", "{a:1,}", "{a:<|\"|>x", "{a:1,a:2}", "{a:True}"})
    EXPECT_EQ(read(text, Syntax::gemma), "failed") << text;
}

TEST(ValueReader, numbers_are_those_of_json_that_a_double_holds) {
  for (const char* text : {"0", "-0", "10", "1.5", "-1.25e-3", "1E+10", "12345678901234567890"})
    EXPECT_TRUE(is_number(text)) << text;
  for (const char* text : {"", "-", "00", "1.e3", "e3", "0x1", "1e400", "1 ", "٣", "inf"})
    EXPECT_FALSE(is_number(text)) << text;
}

// ---- text between tags

const XmlValueRules kTags = {.close = "</p>", .next = {"<p=", "</f>"}, .line_breaks = true};
const XmlValueRules kMarkup = {.close = "</p>", .next = {"<p", "</f>"}, .markup = true};

std::string value(const XmlValueRules& rules, StringRule rule, std::string text) {
  ArgumentWriter writer;
  XmlValueReader reader(rules, writer, rule);
  text += "</f>";
  for (size_t i = 0; i < text.size(); ++i)
    if (reader.push(text[i]) == Step::done) return writer.written() + std::string(text.substr(i + 1));
  return "open: " + writer.written();
}

TEST(XmlValue, strings_stay_strings) {
  EXPECT_EQ(value(kTags, StringRule::yes, "\n12\n</p>"), R"("12")");
  EXPECT_EQ(value(kTags, StringRule::yes, "null</p>"), R"("null")");
  EXPECT_EQ(value(kTags, StringRule::yes, "\n\n a\n\n</p> \n "), R"("\n a\n")");
  EXPECT_EQ(value(kTags, StringRule::yes, "</p>"), R"("")");
  EXPECT_EQ(value(kTags, StringRule::nullable, "null</p>"), "null");
  EXPECT_EQ(value(kTags, StringRule::nullable, "nul</p>"), R"("nul")");
  EXPECT_EQ(value(kTags, StringRule::nullable, "nulls</p>"), R"("nulls")");
  EXPECT_EQ(value(kTags, StringRule::nullable, "true</p>"), R"("true")");
}

TEST(XmlValue, other_values_are_json_or_else_strings) {
  EXPECT_EQ(value(kTags, StringRule::no, "\n 12 \n</p>"), "12");
  EXPECT_EQ(value(kTags, StringRule::no, "[1,'a',True]</p>"), R"([1, "a", true])");
  EXPECT_EQ(value(kTags, StringRule::no, "12 13</p>"), R"("12 13")");
  EXPECT_EQ(value(kTags, StringRule::no, "\"a\" \"b\"</p>"), R"("\"a\" \"b\"")");
  EXPECT_EQ(value(kTags, StringRule::no, "\"a\"</p>"), R"("a")");
  EXPECT_EQ(value(kTags, StringRule::no, "2026-01-15</p>"), R"("2026-01-15")");
  EXPECT_EQ(value(kTags, StringRule::no, "{\"a\": </p>"), R"("{\"a\": ")");
  EXPECT_EQ(value(kTags, StringRule::no, "</p>"), R"("")");
}

TEST(XmlValue, the_closing_tag_counts_where_a_tag_follows_it) {
  EXPECT_EQ(value(kTags, StringRule::yes, "a</p>b </p> </p></p>\n"), R"("a</p>b </p> </p>")");
  EXPECT_EQ(value(kTags, StringRule::yes, "</p><p>x</p><q></p>"), R"("</p><p>x</p><q>")");
  EXPECT_EQ(value(kTags, StringRule::yes, "a"), "open: \"a</f>");
  EXPECT_EQ(value(kTags, StringRule::yes, "<</p</p>"), R"("<</p")");
}

TEST(XmlValue, sections_and_entities) {
  EXPECT_EQ(value(kMarkup, StringRule::yes, " \n<![CDATA[a &lt; ]]] </p></f> ]]>1]]>\n</p>"),
            R"("a &lt; ]]] </p></f> ]]>1"</f>)");
  EXPECT_EQ(value(kMarkup, StringRule::yes, "<![CDATA[a]]]]><![CDATA[>]]></p>"), R"("a]]>"</f>)");
  EXPECT_EQ(value(kMarkup, StringRule::no, "<![CDATA[[1]]]></p>"), "[1]</f>");
  EXPECT_EQ(value(kMarkup, StringRule::yes, " <![CDAT a</p>"), R"(" <![CDAT a")");
  EXPECT_EQ(value(kMarkup, StringRule::yes, "&lt;&gt;&amp;&quot;&apos;&#9;&#x20ac;</p>"), R"("<>&\"'\t€")");
  EXPECT_EQ(value(kMarkup, StringRule::yes, "& &; &&lt; &nbsp; &#0; &#xd800; &#x110000; &#1a; &lt</p>"),
            R"("& &; &< &nbsp; &#0; &#xd800; &#x110000; &#1a; &lt")");
  EXPECT_EQ(value(kTags, StringRule::yes, "&lt;<![CDATA[x]]></p>"), R"("&lt;<![CDATA[x]]>")");
}

}  // namespace
}  // namespace hearth::text::tools
