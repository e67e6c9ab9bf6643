#include "text/tools/call_grammar.h"

#include <gtest/gtest.h>

#include <random>

#include "answer_samples.h"
#include "schema_check.h"
#include "text/grammar/constraint.h"

namespace hearth::text {
namespace {

using enum ToolDialect;

json::Value parsed(std::string_view text) { return json::parse(text, "test"); }

GrammarPtr grammar_of(ToolDialect dialect, const std::vector<ToolSpec>& tools, bool parallel = true) {
  GrammarBuilder b;
  return b.compile(answer_of_calls(b, {.dialect = dialect, .tools = tools, .parallel_calls = parallel}));
}

std::vector<ToolSpec> one_tool(std::string_view properties, std::string_view required = "[]") {
  return {{"f", "",
           parsed(fmt::format(R"({{"type": "object", "properties": {}, "required": {}}})", properties, required))}};
}

AnswerOptions options_of(ToolDialect dialect, const std::vector<ToolSpec>& tools) {
  AnswerOptions options;
  options.dialect = dialect;
  options.tools = tools;
  return options;
}

// The markup of one call of f with one argument, as the dialect's models write it.
std::string call_text(ToolDialect dialect, const std::string& value, const std::string& key = "v") {
  const ToolShape shape = tool_shape(dialect);
  std::string out = fmt::format("{}{}f{}", shape.opener, shape.before_name, shape.after_name);
  if (shape.form == ArgumentForm::gemma_values) out += fmt::format("{{{}:{}}}", key, value);
  else out += fmt::format("{}{}{}{}{}", shape.before_key, key, shape.after_key, value, shape.after_value);
  return out + std::string(shape.after_arguments);
}

struct Case {
  ToolDialect dialect;
  std::string schema;                                     // of the argument v
  std::vector<std::pair<std::string, std::string>> good;  // what is written, the argument in JSON
  std::vector<std::string> bad;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      // Strings as they are, up to the closing tag.
      {qwen3_coder,
       R"({"type": "string"})",
       {{"Paris", R"("Paris")"},
        {"007", R"("007")"},
        {"null", R"("null")"},
        {"", R"("")"},
        {"\n a < b && \"c\" \\ </param> </p\n\n", R"("\n a < b && \"c\" \\ </param> </p\n\n")"},
        {"<tool_call>\n<function=f>\n<parameter=v>\n</function>\n</tool_call>",
         R"("<tool_call>\n<function=f>\n<parameter=v>\n</function>\n</tool_call>")"}},
       {"a</parameter> b", "\xff"}},
      {minicpm5,
       R"({"type": "string"})",
       {{"Paris", R"("Paris")"},
        {" 007\n", R"(" 007\n")"},
        {"a &lt; b < c &amp;&amp; d", R"("a < b < c && d")"},
        {"<![CDATA[if (a < b && c[d[0]]>1) {}\n</param></function>]]>",
         R"("if (a < b && c[d[0]]>1) {}\n</param></function>")"},
        {"<![CDATA[a]]]]><![CDATA[>b]]>", R"("a]]>b")"},
        {"<![CDATA[]]>", R"("")"}},
       {"<![CDATA[a", "<![CDATA[a]]", "a</param>b", " <![CDATA[a"}},
      {gemma4,
       R"({"type": "string"})",
       {{"<|\"|>Paris, \"13\"e\n{a:1}]<|\"|>", R"("Paris, \"13\"e\n{a:1}]")"},
        {"<|\"|><|\"|>", R"("")"},
        {"<|\"|><|\"|\\ <<|\"<|\"|>", R"("<|\"|\\ <<|\"")"}},
       {"Paris", "\"Paris\"", "<|\"|>a", "<|\"|>a<|\"|>b<|\"|>", "7", "null"}},
      // Bounded, enumerated and patterned strings.
      {qwen3_coder,
       R"({"type": "string", "maxLength": 3})",
       {{"é<b", R"("é<b")"}, {"a\n", R"("a\n")"}},
       {"abcd", "ab\n\n\n"}},
      {qwen3_coder,
       R"({"enum": ["a b", "1", "x\n"]})",
       {{"a b", R"("a b")"}, {"1", "\"1\""}, {"x\n", R"("x\n")"}},
       {"a", "x", "2"}},
      {qwen3_coder, R"({"type": "string", "pattern": "^[a-z]+$"})", {{"abc", R"("abc")"}}, {"", "aB"}},
      {qwen3_coder,
       R"({"type": "string", "format": "date"})",
       {{"2024-02-29", R"("2024-02-29")"}},
       {"2023-02-29", "now"}},
      {minicpm5,
       R"({"enum": ["a&b", "c"]})",
       {{"<![CDATA[a&b]]>", R"("a&b")"}, {"c", R"("c")"}, {"<![CDATA[c]]>", R"("c")"}},
       {"a&b", "a&amp;b"}},
      {minicpm5,
       R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {{"ab", R"("ab")"}, {"<![CDATA[<&>]]>", R"("<&>")"}},
       {"a", "a&amp;", "abcd"}},
      {gemma4, R"({"type": "string", "maxLength": 3})", {{"<|\"|>é<b<|\"|>", R"("é<b")"}}, {"<|\"|>abcd<|\"|>"}},
      {gemma4,
       R"({"enum": ["a", "b<|\"|>c"]})",
       {{"<|\"|>a<|\"|>", R"("a")"}, {R"("b<|\"|>c")", R"("b<|\"|>c")"}},
       {"<|\"|>c<|\"|>"}},
      {gemma4,
       R"({"type": "string", "pattern": "^x+$"})",
       {{"<|\"|>xx<|\"|>", R"("xx")"}},
       {"<|\"|>y<|\"|>", "\"xx\""}},
      // A string or null; a string where there could be a number.
      {qwen3_coder,
       R"({"type": ["string", "null"]})",
       {{"null", "null"}, {"nul", R"("nul")"}, {"null ", R"("null ")"}},
       {}},
      {qwen3_coder, R"({"type": ["string", "null"], "enum": ["null", "a"]})", {{"a", R"("a")"}}, {"null"}},
      {minicpm5,
       R"({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]})",
       {{"null", "null"}, {"ab", R"("ab")"}},
       {"abc", "nul"}},
      {gemma4, R"({"type": ["string", "null"]})", {{"null", "null"}, {"<|\"|>null<|\"|>", R"("null")"}}, {"nul"}},
      {qwen3_coder, R"({"type": ["string", "integer"], "maxLength": 2})", {{"12", R"("12")"}}, {"123"}},
      {gemma4,
       R"({"anyOf": [{"type": "string"}, {"type": "integer"}]})",
       {{"<|\"|>12<|\"|>", R"("12")"}},
       {"12", "true"}},
      {qwen3_coder, R"({"enum": ["a", 1, null]})", {{"a", R"("a")"}, {"null", "null"}}, {"1"}},
      // Other values as JSON, which never holds what ends it.
      {qwen3_coder, R"({"type": "integer", "minimum": 3})", {{"3", "3"}, {"12", "12"}}, {"2", "3.5", "\"3\"", "-4"}},
      {qwen3_coder, R"({"type": "boolean"})", {{"true", "true"}}, {"True", "\"true\""}},
      {qwen3_coder, R"({"type": "number"})", {{"-1.5e3", "-1.5e3"}}, {"1e999", "x", std::string(400, '9')}},
      {qwen3_coder,
       R"({"type": "array", "items": {"type": "string"}})",
       {{R"(["a/b<c", "</para"])", R"(["a/b<c", "</para"])"},
        {R"(["\u003c/parameter>"])", R"(["</parameter>"])"},
        {"[]", "[]"}},
       {R"(["</parameter>"])", "a", R"(['a'])"}},
      {qwen3_coder,
       R"({"type": "array", "items": {"const": "</parameter>"}})",
       {{R"(["\u003c/parameter>"])", R"(["</parameter>"])"}},
       {}},
      {minicpm5,
       R"({"type": "object", "properties": {"k": {"type": "string"}}, "additionalProperties": false})",
       {{R"({"k": "a"})", R"({"k": "a"})"},
        {R"({"k": "\u0026lt;"})", R"({"k": "&lt;"})"},
        {R"(<![CDATA[{"k": "&lt; </param> ]] >"}]]>)", R"({"k": "&lt; </param> ]] >"})"}},
       {R"({"k": "&lt;"})", R"({"k": "<"})", R"(<![CDATA[{"k": "]]>"}]]>)"}},
      {minicpm5,
       R"({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})",
       {{"<![CDATA[[[1]]]]>", "[[1]]"}},
       {}},
      {gemma4,
       R"({"type": "object", "properties": {"k": {"type": ["string", "integer"]}, "a b": {"type": "array", "items": {}}}})",
       {{"{k:7}", R"({"k": 7})"},
        {"{k:<|\"|>7<|\"|>,<|\"|>a b<|\"|>:[null,{x:<|\"|>y<|\"|>}]}", R"({"k": "7", "a b": [null, {"x": "y"}]})"},
        {"{more:true}", R"({"more": true})"}},
       {"{\"k\":7}", "{k:[]}", "{a b:[]}"}},
      {gemma4, R"({"type": "integer"})", {{"42", "42"}}, {"<|\"|>42<|\"|>", "4.2"}},
  };
  return kCases;
}

TEST(CallGrammar, lets_through_what_the_schema_allows) {
  for (const Case& test : cases()) {
    const std::vector<ToolSpec> tools = one_tool(fmt::format(R"({{"v": {}}})", test.schema), R"(["v"])");
    const GrammarPtr grammar = grammar_of(test.dialect, tools);
    for (const auto& [value, argument] : test.good) {
      const std::string text = call_text(test.dialect, value);
      EXPECT_TRUE(accepts(grammar, text)) << test.schema << " on " << text;
      const test::JoinedAnswer answer = test::read_answer(options_of(test.dialect, tools), {text});
      EXPECT_EQ(answer.problem, "") << text;
      ASSERT_EQ(answer.calls.size(), 1u) << text;
      EXPECT_EQ(answer.calls[0], (test::JoinedCall{"f", fmt::format(R"({{"v": {}}})", argument), true})) << text;
    }
    for (const std::string& value : test.bad)
      EXPECT_FALSE(accepts(grammar, call_text(test.dialect, value))) << test.schema << " on " << value;
  }
}

TEST(CallGrammar, knows_tools_and_arguments_in_the_schemas_order) {
  const std::vector<ToolSpec> tools =
      one_tool(R"({"a": {"type": "string"}, "b": {"type": "integer"}, "c": {}})", R"(["b"])");
  const std::string open = "<tool_call>\n<function=f>\n", end = "</function>\n</tool_call>";
  const auto argument = [](std::string_view key, std::string_view value) {
    return fmt::format("<parameter={}>\n{}\n</parameter>\n", key, value);
  };
  const std::string a = argument("a", "x"), b = argument("b", "1"), c = argument("c", "{}");
  const GrammarPtr qwen = grammar_of(qwen3_coder, tools);
  for (const std::string& all : {b, a + b, b + c, a + b + c}) EXPECT_TRUE(accepts(qwen, open + all + end)) << all;
  for (const std::string& all : {std::string(), a, b + a, b + b, b + argument("d", "1"), c})
    EXPECT_FALSE(accepts(qwen, open + all + end)) << all;
  EXPECT_FALSE(begins(qwen, "<tool_call>\n<function=g"));
  EXPECT_FALSE(begins(qwen, "Well"));
  const std::string call = open + b + end;
  EXPECT_TRUE(accepts(qwen, call + "\n" + call));
  EXPECT_FALSE(begins(grammar_of(qwen3_coder, tools, false), call + "\n"));

  const GrammarPtr gemma = grammar_of(gemma4, tools);
  for (const char* all : {"{b:1}", "{a:<|\"|>x<|\"|>,b:1}", "{a:<|\"|><|\"|>, b:1, c:[]}"})
    EXPECT_TRUE(accepts(gemma, fmt::format("<|tool_call>call:f{}<tool_call|>", all))) << all;
  for (const char* all : {"{}", "{a:<|\"|>x<|\"|>}", "{b:1,a:<|\"|>x<|\"|>}", "{b:1,d:2}"})
    EXPECT_FALSE(accepts(gemma, fmt::format("<|tool_call>call:f{}<tool_call|>", all))) << all;
}

TEST(CallGrammar, tools_without_arguments_have_none) {
  for (const char* schema : {"null", "{}", R"({"type": "object", "properties": {}})"}) {
    const std::vector<ToolSpec> tools = {{"f", "", parsed(schema)}};
    EXPECT_TRUE(accepts(grammar_of(qwen3_coder, tools), "<tool_call>\n<function=f>\n</function>\n</tool_call>"));
    EXPECT_TRUE(accepts(grammar_of(minicpm5, tools), "<function name=\"f\"></function>"));
    EXPECT_TRUE(accepts(grammar_of(gemma4, tools), "<|tool_call>call:f{}<tool_call|>"));
  }
}

TEST(CallGrammar, follows_references_and_alternatives_of_arguments) {
  const json::Value schema = parsed(R"({"$ref": "#/$defs/args", "$defs": {"args": {"anyOf": [
      {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": false},
      {"type": "object", "properties": {"name": {"$ref": "#/$defs/name"}}, "required": ["name"], "additionalProperties": false}]},
      "name": {"type": "string", "minLength": 1}}})");
  const std::vector<ToolSpec> tools = {{"f", "", schema}};
  const GrammarPtr grammar = grammar_of(minicpm5, tools);
  for (const char* all : {"<param name=\"id\">7</param>", "<param name=\"name\">a</param>"})
    EXPECT_TRUE(accepts(grammar, fmt::format("<function name=\"f\">{}</function>", all))) << all;
  for (const char* all :
       {"", "<param name=\"name\"></param>", "<param name=\"id\">7</param><param name=\"name\">a</param>"})
    EXPECT_FALSE(accepts(grammar, fmt::format("<function name=\"f\">{}</function>", all))) << all;
}

TEST(CallGrammar, what_cannot_be_written_is_refused) {
  const std::vector<ToolSpec> named = {{"a>b", "", {}}};
  expect_refused("a name that calls of the family qwen3-coder cannot spell", [&] { grammar_of(qwen3_coder, named); });
  const std::vector<ToolSpec> key = one_tool(R"({"a\nb": {"type": "string"}})", R"(["a\nb"])");
  expect_refused("cannot spell", [&] { grammar_of(minicpm5, key); });
  EXPECT_TRUE(accepts(grammar_of(gemma4, key), "<|tool_call>call:f{<|\"|>a\nb<|\"|>:<|\"|>x<|\"|>}<tool_call|>"));
  const std::vector<ToolSpec> optional = one_tool(R"({"a\nb": {"type": "string"}})");
  EXPECT_TRUE(accepts(grammar_of(minicpm5, optional), "<function name=\"f\"></function>"));
  const std::vector<ToolSpec> longer = one_tool(R"({"v": {"type": "string", "maxLength": 9000}})");
  expect_refused("hold strings to at most 1024 characters, not 9000", [&] { grammar_of(qwen3_coder, longer); });
  const std::vector<ToolSpec> unknown = one_tool(R"({"v": {"type": "array", "uniqueItems": true}})");
  for (const ToolDialect dialect : {qwen3_coder, minicpm5, gemma4})
    expect_refused("uniqueItems", [&] { grammar_of(dialect, unknown); });
}

// Longer than what is made of states: counted, without the character that the mark begins with.
TEST(CallGrammar, long_strings_inside_of_json_are_counted) {
  const std::vector<ToolSpec> tools =
      one_tool(R"({"v": {"type": "array", "items": {"type": "string", "maxLength": 2000}}})", R"(["v"])");
  for (const ToolDialect dialect : {qwen3_coder, minicpm5, gemma4}) {
    const GrammarPtr grammar = grammar_of(dialect, tools);
    const auto list = [](size_t n, const std::string& more) {
      return fmt::format("[\"{}{}\"]", std::string(n, 'x'), more);
    };
    EXPECT_TRUE(accepts(grammar, call_text(dialect, list(1999, "\\u003c"))));
    EXPECT_FALSE(accepts(grammar, call_text(dialect, list(1999, "<"))));
    EXPECT_FALSE(accepts(grammar, call_text(dialect, list(2001, ""))));
  }
}

TEST(CallGrammar, a_bare_call_opens_an_answer_or_there_is_none) {
  const std::vector<ToolSpec> tools = sample_tools();
  GrammarBuilder b;
  const GrammarPtr grammar = b.compile(answer_with_calls(b, {.dialect = llama3, .tools = tools}));
  const std::string call = R"({"name": "get_weather", "parameters": {"city": "Oslo"}})";
  for (const std::string& text :
       {std::string(), std::string("Hello {\"name\": \"get_weather\"}"), std::string(R"({"name": "Bob", "age": 7})"),
        std::string(R"({"name": "get_weather)"), call, "\n" + call, call + "; " + call, "<|python_tag|>" + call,
        "Look: <|python_tag|>" + call})
    EXPECT_TRUE(accepts(grammar, text)) << text;
  for (const std::string& text :
       {std::string(R"({"name": "get_weather"})"), std::string(R"({"name": "get_weather", "age": 7})"),
        std::string(R"({"name": "get_weather", "parameters": {"city": 7}})"), call + " done",
        std::string("<|python_tag|>print(1)"), std::string("a <|python_tag|>")})
    EXPECT_FALSE(accepts(grammar, text)) << text;
  GrammarBuilder whole;
  const GrammarPtr required = whole.compile(answer_of_calls(whole, {.dialect = llama3, .tools = tools}));
  EXPECT_TRUE(accepts(required, call));
  EXPECT_TRUE(accepts(required, "<|python_tag|>" + call));
  EXPECT_FALSE(begins(required, "He"));
}

// As many as a large agent has.
TEST(CallGrammar, tens_of_tools_fit) {
  const json::Value schema = parsed(R"({"type": "object", "properties": {
      "path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": ["string", "null"]},
      "limit": {"type": "integer", "minimum": 0}, "scale": {"type": "number"}, "mode": {"enum": ["a", "b", "c"]},
      "name": {"type": "string", "minLength": 1, "maxLength": 64}, "lines": {"type": "array", "items": {"type": "string"}},
      "edits": {"type": "array", "items": {"type": "object", "properties": {"from": {"type": "string"}, "to": {"type": "string"}}}}},
      "required": ["path", "edits"]})");
  std::vector<ToolSpec> tools;
  for (int i = 0; i < 60; ++i) tools.push_back({fmt::format("tool_{}", i), "", schema});
  for (const ToolDialect dialect : {qwen3_coder, minicpm5, gemma4, llama3, mistral}) {
    SCOPED_TRACE(name_of(dialect));
    const GrammarPtr grammar = grammar_of(dialect, tools);
    const ToolShape shape = tool_shape(dialect);
    EXPECT_TRUE(begins(grammar, fmt::format("{}{}{}tool_59", shape.opener, shape.list_open, shape.before_name)));
  }
}

// Free until the marker; from it on nothing but calls, then an end.
TEST(CallGrammar, rules_from_the_marker_on) {
  const std::vector<ToolSpec> tools = one_tool(R"({"v": {"type": "integer"}})", R"(["v"])");
  GrammarBuilder b;
  const GrammarPtr grammar = b.compile(calls_behind_opener(b, {.dialect = qwen3_coder, .tools = tools}));
  ConstraintOptions options;
  options.begin = ConstraintOptions::Begin::at_marker;
  options.marker = tool_shape(qwen3_coder).opener;
  const auto vocabulary = vocabulary_of({"<tool_call>", "</tool_call>", "Hi", "7"});
  Constraint constraint(grammar, vocabulary, options);
  const auto push = [&](std::string_view text) {
    for (const char c : text) constraint.accept(3 + static_cast<uint8_t>(c));
  };
  push("Hi <tool_call");
  EXPECT_TRUE(constraint.free());
  push(">\n<function=f>\n<parameter=v>\n");
  EXPECT_FALSE(constraint.free());
  EXPECT_FALSE(constraint.accepting());
  EXPECT_THROW(push("x"), Error);
  push("7\n</parameter>\n</function>\n</tool_call>");
  EXPECT_TRUE(constraint.accepting());
  EXPECT_THROW(push("!"), Error);
}

// ---- properties

class RandomSchemas {
 public:
  explicit RandomSchemas(uint64_t seed) : random_(seed) {}

  json::Value tool() {
    json::Object root;
    root["type"] = "object";
    json::Object properties;
    json::Array required;
    static const std::vector<std::string> kNames = {"a", "b_c", "x y", "1k", "null", "é", "v"};
    for (const std::string& name : kNames) {
      if (below(2)) continue;
      properties[name] = value(2);
      if (below(2)) required.push_back(name);
    }
    root["properties"] = std::move(properties);
    root["required"] = std::move(required);
    root["additionalProperties"] = false;  // no grammar keeps names that it does not know from coming twice
    root["$defs"] = parsed(
        R"({"text": {"type": "string"}, "list": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/list"}}})");
    return root;
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  json::Value value(int depth) {
    static const std::vector<const char*> kLeaves = {
        R"({"type": "string"})",
        R"({"type": "string", "minLength": 1, "maxLength": 6})",
        R"({"type": "string", "minLength": 2})",
        R"({"type": "string", "pattern": "^[a-c<&>\\]/\n]{1,4}$"})",
        R"({"type": "string", "pattern": "a.*b"})",
        R"({"type": "string", "format": "time"})",
        R"({"enum": ["a<b", "x & y", "</parameter>", "null", "line\nbreak\n", "1", "]]>", "<|\"|>", ""]})",
        R"({"enum": ["a", 1, null, true, [1, "</param>"]]})",
        R"({"const": "a \"b\" \\ </param>"})",
        R"({"type": ["string", "null"]})",
        R"({"type": ["string", "null"], "maxLength": 4})",
        R"({"type": ["string", "integer", "boolean"]})",
        R"({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}, {"type": "array", "items": {"type": "string"}}]})",
        R"({"type": "integer"})",
        R"({"type": "integer", "minimum": -3, "maximum": 200})",
        R"({"type": "integer", "minimum": 0})",
        R"({"type": "number"})",
        R"({"type": "number", "minimum": 0.5})",
        R"({"type": "boolean"})",
        R"({"type": "null"})",
        R"({"$ref": "#/$defs/text"})",
        R"({"$ref": "#/$defs/list"})"};
    const size_t pick = below(depth > 0 ? kLeaves.size() + 8 : kLeaves.size());
    if (pick < kLeaves.size()) return parsed(kLeaves[pick]);
    json::Object o;
    if (pick % 2) {
      o["type"] = "array";
      o["items"] = value(depth - 1);
      o["minItems"] = static_cast<int>(below(3));
      o["maxItems"] = static_cast<int>(2 + below(2));
      return o;
    }
    o["type"] = "object";
    json::Object properties;
    for (const char* name : {"k", "a b", "<|\"|>"})
      if (below(2)) properties[name] = value(depth - 1);
    o["properties"] = std::move(properties);
    o["additionalProperties"] = false;
    return o;
  }

  std::mt19937_64 random_;
};

// A text that a grammar lets through, drawn at random from a vocabulary that has the dialects' markup and parts of it.
std::optional<std::string> random_text(const GrammarPtr& grammar, uint64_t seed) {
  static const std::vector<std::string> kClosers = {"</parameter>", "</param>", "<|\"|>", "]]>", "</function>",
                                                    "\"",           "]",        "}",      "\n",  "<tool_call|>"};
  static const auto vocabulary = [] {
    std::vector<std::string> pieces = {
        "<",   "</", "</para", "meter>", "</par",   "am>",          "]]",   ">",   "<![CDATA[", "<|",   "|>",
        "\"|", "&",  "&lt;",   "&am",    "p;",      "null",         "true", "12",  "é",         "日本", " ",
        "a",   "ab", "\\",     "\\n",    "\\u003c", "</tool_call>", "{\"",  "\": "};
    for (const std::string& closer : kClosers)
      if (std::find(pieces.begin(), pieces.end(), closer) == pieces.end()) pieces.push_back(closer);
    return vocabulary_of(pieces);
  }();
  std::mt19937_64 random(seed);
  GrammarMatcher matcher(grammar, vocabulary);
  std::vector<uint64_t> allowed(vocabulary->words());
  std::string text;
  const size_t wanted = random() % 120;
  for (size_t n = 0; n < 4000; ++n) {
    if (matcher.finished() || (matcher.accepting() && random() % 2)) return text;
    matcher.mask(allowed);
    std::vector<int32_t> bytes, pieces, closers;
    for (int32_t id = 0; id < vocabulary->vocab_size(); ++id) {
      if (!(allowed[static_cast<size_t>(id) / 64] >> (id % 64) & 1) || vocabulary->is_end(id)) continue;
      const std::string_view spelled = vocabulary->bytes(id);
      (spelled.size() == 1 ? bytes : pieces).push_back(id);
      for (const std::string& closer : kClosers)
        if (spelled == closer) closers.push_back(id);
    }
    const bool close = n > wanted && !closers.empty() && random() % 4 != 0;
    const std::vector<int32_t>& from = close                                                ? closers
                                       : !pieces.empty() && (bytes.empty() || random() % 3) ? pieces
                                                                                            : bytes;
    if (from.empty()) return std::nullopt;
    const int32_t id = from[random() % from.size()];
    if (!matcher.accept(id)) return std::nullopt;
    text += vocabulary->bytes(id);
  }
  return std::nullopt;
}

// What a grammar lets through is read as calls whose arguments validate, however the text is cut, streamed or not.
TEST(CallGrammar, what_it_lets_through_is_read_as_calls_that_validate) {
  int read = 0, ended = 0, drawn = 0;
  for (const ToolDialect dialect : {qwen3_coder, minicpm5, gemma4, hermes, llama3, mistral, mistral_args})
    for (uint64_t seed = 0; seed < 12; ++seed) {
      RandomSchemas schemas(seed);
      std::vector<ToolSpec> tools = {{"f", "", schemas.tool()}, {"get_it", "", schemas.tool()}};
      const GrammarPtr grammar = grammar_of(dialect, tools, seed % 3 != 0);
      for (uint64_t round = 0; round < 6; ++round, ++drawn) {
        const std::optional<std::string> text = random_text(grammar, seed * 100 + round);
        if (!text) continue;
        ++ended;
        SCOPED_TRACE(fmt::format("{} seed {} round {}\n{}", name_of(dialect), seed, round, *text));
        const AnswerOptions options = options_of(dialect, tools);
        ASSERT_EQ(test::check_answer(options, *text, false, round), "");
        const test::JoinedAnswer answer = test::read_answer(options, {*text});
        ASSERT_EQ(answer.text, "");
        ASSERT_GE(answer.whole, 1);
        ASSERT_EQ(answer.whole, static_cast<int>(answer.calls.size()));
        for (const test::JoinedCall& call : answer.calls) {
          const json::Value arguments = parsed(call.arguments);
          const json::Value& schema = tools::find_tool(tools, call.name)->parameters;
          ASSERT_TRUE(satisfies(arguments, schema, schema)) << call.arguments << "\n" << json::dump(schema);
          ++read;
        }
        const std::string_view part = std::string_view(*text).substr(0, text->size() * (round + 1) / 7);
        ASSERT_EQ(test::check_answer(options, part, true, round), "") << part;
      }
    }
  EXPECT_GT(ended, drawn / 2);
  EXPECT_GT(read, ended - 1);
}

}  // namespace
}  // namespace hearth::text
