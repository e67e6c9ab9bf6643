#include "text/tools/tool_spec.h"

#include <gtest/gtest.h>

namespace hearth::text::tools {
namespace {

StringRule rule(const char* schema, const char* key = "k") { return string_rule(json::parse(schema, "schema"), key); }

TEST(StringRule, follows_the_schema) {
  EXPECT_EQ(rule(R"({"properties": {"k": {"type": "string"}}})"), StringRule::yes);
  EXPECT_EQ(rule(R"({"properties": {"k": {"type": "integer"}}})"), StringRule::no);
  EXPECT_EQ(rule(R"({"properties": {"k": {"type": ["null", "string"]}}})"), StringRule::nullable);
  EXPECT_EQ(rule(R"({"properties": {"k": {"type": "string", "nullable": true}}})"), StringRule::nullable);
  EXPECT_EQ(rule(R"({"properties": {"k": {"type": ["integer", "string"]}}})"), StringRule::yes);
  EXPECT_EQ(rule(R"({"properties": {"k": {"enum": ["a", "b"]}}})"), StringRule::yes);
  EXPECT_EQ(rule(R"({"properties": {"k": {"enum": [1, 2]}}})"), StringRule::no);
  EXPECT_EQ(rule(R"({"properties": {"k": {"const": "a"}}})"), StringRule::yes);
  EXPECT_EQ(rule(R"({"properties": {"k": {"anyOf": [{"type": "string"}, {"type": "null"}]}}})"), StringRule::nullable);
  EXPECT_EQ(rule(R"({"properties": {"k": {"oneOf": [{"type": "object"}, {"type": "array"}]}}})"), StringRule::no);
  EXPECT_EQ(rule(R"({"properties": {"k": {}}})"), StringRule::no);
  EXPECT_EQ(rule(R"({"properties": {"j": {"type": "string"}}})"), StringRule::no);
  EXPECT_EQ(rule(R"({"properties": {"j": {}}, "additionalProperties": {"type": "string"}})"), StringRule::yes);
  EXPECT_EQ(rule(R"({"additionalProperties": true})"), StringRule::no);
  EXPECT_EQ(rule(R"({"allOf": [{"properties": {"k": {"type": "string"}}}]})"), StringRule::yes);
  EXPECT_EQ(rule(R"({"anyOf": [{"properties": {"j": {}}, "additionalProperties": false},
                                {"properties": {"k": {"type": "string"}}}]})"),
            StringRule::yes);
  EXPECT_EQ(string_rule({}, "k"), StringRule::no);
  EXPECT_EQ(rule("[]"), StringRule::no);
  EXPECT_EQ(rule(R"({"properties": [1]})"), StringRule::no);
}

TEST(StringRule, follows_references_inside_the_schema) {
  EXPECT_EQ(rule(R"({"properties": {"k": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": {"type": "string"}}})"),
            StringRule::yes);
  EXPECT_EQ(
      rule(
          R"({"$ref": "#/$defs/P", "$defs": {"P": {"properties": {"k": {"$ref": "#/$defs/S"}}}, "S": {"enum": ["x"]}}})"),
      StringRule::yes);
  EXPECT_EQ(rule(R"({"properties": {"k": {"$ref": "#/anyOf/1"}}, "anyOf": [{}, {"type": "string"}]})"),
            StringRule::yes);
  for (const char* lost : {"#/$defs/none", "#x", "other.json", "#/anyOf/9", "#/properties/k"})
    EXPECT_EQ(rule(fmt::format(R"({{"properties": {{"k": {{"$ref": "{}"}}}}, "anyOf": [{{}}]}})", lost).c_str()),
              StringRule::no)
        << lost;
}

TEST(ToolSpec, is_shown_to_templates_in_the_common_form) {
  const std::vector<ToolSpec> tools = {{"f", "Does f.", json::parse(R"({"type": "object"})", "p")}, {"g", "", {}}};
  EXPECT_EQ(
      json::dump(tools_for_template(tools)),
      R"([{"type": "function", "function": {"name": "f", "description": "Does f.", "parameters": {"type": "object"}}}, )"
      R"({"type": "function", "function": {"name": "g", "description": "", "parameters": {}}}])");
  EXPECT_EQ(find_tool(tools, "g"), &tools[1]);
  EXPECT_EQ(find_tool(tools, "h"), nullptr);
}

}  // namespace
}  // namespace hearth::text::tools
