#include "text/tools/history.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "answer_samples.h"
#include "support/outcome.h"
#include "text/chat_template.h"

namespace hearth::text {
namespace {

json::Value parsed(std::string_view text) { return json::parse(text, "test"); }

std::string ready(std::string_view messages, ToolDialect dialect = ToolDialect::hermes) {
  return json::dump(messages_for_template(parsed(messages), {.dialect = dialect}));
}

std::string refused(std::string_view messages) {
  return test::outcome([&] { ready(messages); });
}

constexpr std::string_view kTalk = R"([
  {"role": "user", "content": "Weather?"},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\",\"days\":2}"}},
    {"id": "b", "type": "function", "function": {"name": "now", "arguments": ""}}]},
  {"role": "tool", "tool_call_id": "b", "content": "noon"},
  {"role": "tool", "tool_call_id": "a", "content": "sunny"},
  {"role": "assistant", "content": "Sunny.", "tool_calls": []}])";

TEST(History, arguments_become_objects_and_results_stand_in_order) {
  EXPECT_EQ(
      ready(kTalk),
      R"([{"role": "user", "content": "Weather?"}, )"
      R"({"role": "assistant", "content": "", "tool_calls": [)"
      R"({"id": "a", "type": "function", "function": {"name": "weather", "arguments": {"city": "Rome", "days": 2}}}, )"
      R"({"id": "b", "type": "function", "function": {"name": "now", "arguments": {}}}]}, )"
      R"({"role": "tool", "tool_call_id": "a", "content": "sunny", "name": "weather"}, )"
      R"({"role": "tool", "tool_call_id": "b", "content": "noon", "name": "now"}, )"
      R"({"role": "assistant", "content": "Sunny."}])");
  const char* plain =
      R"([{"role": "user", "content": [{"type": "text", "text": "x"}]}, {"role": "assistant", "content": null}])";
  EXPECT_EQ(ready(plain), plain);
  EXPECT_EQ(ready("[]"), "[]");
}

TEST(History, mistral_gets_ids_of_nine_characters) {
  const std::string out = ready(R"([
    {"role": "assistant", "tool_calls": [{"id": "call_x", "function": {"name": "f", "arguments": {}}},
                                         {"id": "abcDEF123", "function": {"name": "f"}}]},
    {"role": "tool", "tool_call_id": "call_x", "content": "1"}, {"role": "tool", "tool_call_id": "abcDEF123"}])",
                                ToolDialect::mistral);
  EXPECT_NE(out.find(R"("id": "call00001")"), std::string::npos) << out;
  EXPECT_NE(out.find(R"("tool_call_id": "call00001")"), std::string::npos) << out;
  EXPECT_NE(out.find(R"("tool_call_id": "abcDEF123", "name": "f", "content": "")"), std::string::npos) << out;
  EXPECT_EQ(out.find("call_x"), std::string::npos) << out;
}

TEST(History, renders_with_the_template_of_a_family) {
  std::ifstream file(HEARTH_TESTS_DIR "/text/templates/xml_tools.jinja");
  ASSERT_TRUE(file.good());
  const ChatTemplate xml(std::string(std::istreambuf_iterator<char>(file), {}));
  ChatInput input;
  input.messages = messages_for_template(parsed(kTalk), {.dialect = ToolDialect::qwen3_coder});
  const std::string text = xml.render(input);
  EXPECT_NE(
      text.find(
          "<tool_call><function=weather><parameter=city>Rome</parameter><parameter=days>2</parameter></function>"),
      std::string::npos)
      << text;
}

// What a family's template shows of an earlier call is what the parser reads when the model writes the same.
TEST(History, calls_of_a_rendered_history_are_read_back) {
  struct Family {
    const char* name;
    ToolDialect dialect;
    std::string header, end;
  };
  const std::string arguments = json::dump(
      parsed(R"({"query": "a \"b\" \\ </tool_call>\n <c> & é 😀", "filter": {"x": [1, 2.5, null, true], "y": {}},
                            "limit": -3, "zip": "01234"})"));
  json::Object function, call, answer;
  function["name"] = "search";
  function["arguments"] = arguments;
  call["id"] = "abcdefghi";
  call["function"] = std::move(function);
  answer["role"] = "assistant";
  answer["content"] = "";
  answer["tool_calls"] = json::Array{json::Value(call)};
  const json::Array talk = {parsed(R"({"role": "user", "content": "Find."})"), answer,
                            parsed(R"({"role": "tool", "tool_call_id": "abcdefghi", "content": "none"})")};
  const std::vector<ToolSpec> tools = {
      {"search", "Finds.", parsed(R"({"type": "object", "properties": {"query": {"type": "string"}}})")}};
  for (const Family& family : {Family{"hermes_tools", ToolDialect::hermes, "<|im_start|>assistant", "<|im_end|>"},
                               Family{"qwen3", ToolDialect::hermes, "<|im_start|>assistant\n", "<|im_end|>"},
                               Family{"xml_tools", ToolDialect::qwen3_coder, "<|im_start|>assistant", "<|im_end|>"},
                               Family{"llama3", ToolDialect::llama3, "assistant<|end_header_id|>\n\n", "<|eot_id|>"},
                               Family{"mistral_tools", ToolDialect::mistral, "[/INST]", "</s>"},
                               Family{"chatml", ToolDialect::generic, "<|im_start|>assistant\n", "<|im_end|>"}}) {
    std::ifstream file(std::string(HEARTH_TESTS_DIR "/text/templates/") + family.name + ".jinja");
    ASSERT_TRUE(file.good()) << family.name;
    const ChatTemplate chat(std::string(std::istreambuf_iterator<char>(file), {}), family.name);
    ChatInput input;
    input.messages = messages_for_template(talk, {.dialect = family.dialect, .tools = tools});
    if (family.dialect != ToolDialect::generic) input.tools = tools_for_template(tools);
    input.eos_token = "</s>";
    input.now = std::tm{};
    const std::string text = chat.render(input);
    const size_t begin = text.find(family.header) + family.header.size();
    const std::string written = text.substr(begin, text.find(family.end, begin) - begin);
    const test::JoinedAnswer read = test::read_answer(sample_options(family.dialect, false), {written});
    EXPECT_EQ(read.text, "") << family.name;
    ASSERT_EQ(read.whole, 1) << family.name << ": " << text;
    EXPECT_EQ(read.calls[0].arguments, arguments) << family.name;
  }
}

TEST(History, is_described_for_templates_without_tools) {
  const std::vector<ToolSpec> tools = {{"now", "The time.", {}}};
  json::Value out = messages_for_template(parsed(kTalk), {.dialect = ToolDialect::generic, .tools = tools});
  EXPECT_EQ(out.array()->size(), 5u);
  EXPECT_EQ((*out.array())[0].get("role")->as_string("role"), "system");
  EXPECT_EQ((*out.array())[0].get("content")->as_string("content"), tool_prompt(tools, true));
  EXPECT_EQ((*out.array())[2], parsed(R"({"role": "assistant", "content":
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"})"));
  EXPECT_EQ((*out.array())[3], parsed(R"({"role": "user", "content":
      "<tool_response>\nsunny\n</tool_response>\n<tool_response>\nnoon\n</tool_response>"})"));

  out = messages_for_template(parsed(R"([{"role": "system", "content": "Be kind."}, {"role": "assistant", "content":
      [{"type": "text", "text": "Hm."}], "tool_calls": [{"id": "a", "function": {"name": "now"}}]},
      {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "on"}]}])"),
                              {.dialect = ToolDialect::generic, .tools = tools, .parallel_calls = false});
  ASSERT_EQ(out.array()->size(), 3u);
  EXPECT_EQ((*out.array())[0].get("content")->as_string("content"), "Be kind.\n\n" + tool_prompt(tools, false));
  EXPECT_EQ((*out.array())[1], parsed(R"({"role": "assistant", "content": [{"type": "text", "text": "Hm."},
      {"type": "text", "text": "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"}]})"));
  EXPECT_EQ((*out.array())[2], parsed(R"({"role": "user", "content": "<tool_response>\nnoon\n</tool_response>"})"));
}

TEST(History, the_description_shows_the_tools_and_the_markup) {
  const std::vector<ToolSpec> tools = {{"now", "The time.", {}}};
  const std::string text = tool_prompt(tools, true);
  EXPECT_NE(text.find("\n" + json::dump((*tools_for_template(tools).array())[0]) + "\n"), std::string::npos);
  EXPECT_NE(text.find("<tool_call>\n{\"name\": "), std::string::npos);
  EXPECT_NE(text, tool_prompt(tools, false));
}

TEST(History, what_does_not_pair_up_is_refused) {
  const std::string call =
      R"({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]})";
  const std::string result = R"({"role": "tool", "tool_call_id": "a", "content": "x"})",
                    user = R"({"role": "user", "content": "x"})";
  const auto list = [](std::vector<std::string> parts) { return fmt::format("[{}]", fmt::join(parts, ",")); };
  EXPECT_EQ(refused(list({user, call})), "invalid_argument: messages[1]: the call \"a\" of f has no result behind it");
  EXPECT_EQ(refused(list({user, call, user, result})),
            "invalid_argument: messages[1]: the call \"a\" of f has no result behind it");
  EXPECT_EQ(refused(list({user, result})), "invalid_argument: messages[1]: no call ahead of it has the id \"a\"");
  EXPECT_EQ(refused(list({call, result, user, result})),
            "invalid_argument: messages[3]: no call ahead of it has the id \"a\"");
  EXPECT_EQ(refused(list({call, result, result})),
            "invalid_argument: messages[2]: the call \"a\" has a result already");
  EXPECT_EQ(refused(R"([{"role": "tool", "content": "x"}])"),
            "invalid_argument: messages[0]: a tool's result needs a tool_call_id");
  EXPECT_EQ(refused(list({call, result, call, result})), "accepted");
}

TEST(History, broken_calls_are_refused_with_their_place) {
  const auto with = [](std::string_view calls) {
    return refused(
        fmt::format(R"([{{"role": "user", "content": ""}}, {{"role": "assistant", "tool_calls": {}}}])", calls));
  };
  EXPECT_EQ(with("{}"), "invalid_argument: messages[1].tool_calls: expected an array, found an object");
  EXPECT_EQ(with("[1]"), "invalid_argument: messages[1].tool_calls[0]: a call needs a function with a name");
  EXPECT_EQ(with(R"([{"id": "a", "function": {"name": ""}}])"),
            "invalid_argument: messages[1].tool_calls[0]: a call needs a function with a name");
  EXPECT_EQ(with(R"([{"function": {"name": "f"}}])"),
            "invalid_argument: messages[1].tool_calls[0]: a call needs an id");
  EXPECT_EQ(with(R"([{"id": "a", "function": {"name": "f"}}, {"id": "a", "function": {"name": "f"}}])"),
            "invalid_argument: messages[1].tool_calls[1]: two calls have the id \"a\"");
  EXPECT_EQ(with(R"([{"id": "a", "function": {"name": "f", "arguments": "[1]"}}])"),
            "invalid_argument: messages[1].tool_calls[0].function.arguments: expected a JSON object, found an array");
  EXPECT_EQ(with(R"([{"id": "a", "function": {"name": "f", "arguments": 5}}])"),
            "invalid_argument: messages[1].tool_calls[0].function.arguments: expected a JSON object, found a number");
  EXPECT_TRUE(with(R"([{"id": "a", "function": {"name": "f", "arguments": "{\"a\": "}}])")
                  .starts_with("invalid_argument: messages[1].tool_calls[0].function.arguments: "));
  EXPECT_EQ(refused("{}"), "invalid_argument: messages: expected an array, found an object");
  EXPECT_EQ(refused("[1]"), "invalid_argument: messages[0]: expected an object, found a number");
  EXPECT_EQ(test::outcome([] {
              ready(R"([{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
                        {"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url"}]}])",
                    ToolDialect::generic);
            }),
            "invalid_argument: messages[1]: this model takes text alone as a tool's result");
}

}  // namespace
}  // namespace hearth::text
