// Which field of a request its answer is held to, and that none that asks for a format is passed over.
#include <gtest/gtest.h>

#include <string>

#include "server/dialects/openai_chat.h"
#include "server/dialects/openai_completions.h"
#include "server/request_error.h"

namespace hearth::server::openai {
namespace {

struct Case {
  std::string fields;  // members of a body
  std::string format;  // as Generation has it; empty: refused
  std::string field;   // that it stood in, or that is at fault
};
const Case kCases[] = {
    {R"("seed": 1)", "null", ""},
    {R"("grammar": "root ::= \"a\"")", R"({"kind":"grammar","value":"root ::= \"a\""})", "grammar"},
    {R"("grammar": "")", "null", ""},
    {R"("grammar": "", "json_schema": {})", R"({"kind":"json_schema","value":{}})", "json_schema"},
    {R"("grammar": null, "guided_choice": ["a"])", R"({"kind":"choice","value":["a"]})", "guided_choice"},
    {R"("grammar": "x", "guided_grammar": "y")", R"({"kind":"grammar","value":"y"})", "guided_grammar"},
    {R"("json_schema": {"type": "null"}, "grammar": "x")", R"({"kind":"grammar","value":"x"})", "grammar"},
    {R"("json_schema": {"type": "null"})", R"({"kind":"json_schema","value":{"type":"null"}})", "json_schema"},
    {R"("json_schema": "{\"type\": \"null\"}")", R"({"kind":"json_schema","value":{"type":"null"}})", "json_schema"},
    {R"("json_schema": "{")", "", "json_schema"},
    {R"("json_schema": [1])", "", "json_schema"},
    {R"("grammar": {"root": 1})", "", "grammar"},
    {R"("grammar": "x", "grammar_lazy": true)", "", "grammar_lazy"},
    {R"("grammar": "x", "grammar_lazy": false)", R"({"kind":"grammar","value":"x"})", "grammar"},
    {R"("response_format": {"type": "text"}, "json_schema": true)", "", "json_schema"},
    {R"("response_format": {"type": "json_object"}, "json_schema": {})", R"({"kind":"json_object","value":null})",
     "response_format"},
    {R"("response_format": {"type": "json_object", "schema": {"type": "null"}})",
     R"({"kind":"json_schema","value":{"type":"null"}})", "response_format"},
    {R"("response_format": {"type": "json_object", "schema": 3})", "", "response_format"},
    {R"("structured_outputs": {"json": {"type": "null"}})", R"({"kind":"json_schema","value":{"type":"null"}})",
     "structured_outputs.json"},
    {R"("structured_outputs": {"json_object": true})", R"({"kind":"json_object","value":null})",
     "structured_outputs.json_object"},
    {R"("structured_outputs": {"json_object": false})", "null", ""},
    {R"("structured_outputs": {"grammar": 3})", "", "structured_outputs.grammar"},
    {R"("structured_outputs": {"regex": ["a"]})", "", "structured_outputs.regex"},
    {R"("structured_outputs": {"choice": "a"})", "", "structured_outputs.choice"},
    {R"("structured_outputs": {"choice": ["a", 1]})", "", "structured_outputs.choice"},
    {R"("structured_outputs": {"structural_tag": "{}"})", "", "structured_outputs"},
};

template <class Parse>
void check(const std::string& begin, const Parse& parse) {
  for (const Case& c : kCases) {
    const json::Value body = json::parse("{" + begin + ", " + c.fields + "}", "body");
    try {
      const Generation g = parse(*body.object());
      EXPECT_EQ(json::dump(g.format), json::dump(json::parse(c.format.empty() ? "\"refused\"" : c.format, "case")))
          << c.fields;
      EXPECT_EQ(g.format_field, c.field) << c.fields;
      const Generation there = generation_of(to_json(g));
      EXPECT_EQ(there.format_field, c.field) << c.fields;
    } catch (const RequestError& error) {
      EXPECT_EQ(c.format, "") << c.fields << ": " << error.what();
      EXPECT_EQ(error.param(), c.field) << c.fields << ": " << error.what();
    }
  }
}

TEST(FormatFields, of_chats) {
  check(R"("messages": [{"role": "user", "content": "Hi"}])",
        [](const json::Object& body) { return parse_chat(body).generation; });
}

TEST(FormatFields, of_completions) {
  check(R"("prompt": "Hi")", [](const json::Object& body) { return parse_completion(body).generation; });
}

}  // namespace
}  // namespace hearth::server::openai
