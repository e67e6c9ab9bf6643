#include "text/tools/bare_call.h"

#include <gtest/gtest.h>

#include "answer_samples.h"

namespace hearth::text {
namespace {

using test::check_answer;
using test::JoinedAnswer;
using test::JoinedCall;
using test::read_answer;

const std::string kCall = R"({"name": "get_weather", "arguments": {"city": "Paris", "days": 3}})";

std::vector<std::string> bare_calls() {
  return {kCall,
          "\n  " + kCall + "\n",
          "```json\n" + kCall + "\n```",
          "```json " + kCall + "```\n\n",
          "```\n" + kCall + "\n```",
          "<tools>\n" + kCall + "\n</tools>",
          "<tools>" + kCall + "</tools> ",
          "{\n  \"name\": \"get_weather\",\n  \"arguments\": {\n    \"city\": \"Paris\",\n    \"days\": 3\n  }\n}",
          R"({"arguments": {"city": "Paris", "days": 3}, "name": "get_weather"})"};
}

TEST(BareCall, an_answer_that_is_one_call_is_a_call) {
  for (const ToolDialect dialect : {ToolDialect::hermes, ToolDialect::generic})
    for (const std::string& text : bare_calls())
      for (const bool stream : {true, false}) {
        const AnswerOptions options = sample_options(dialect, stream);
        const JoinedAnswer answer = read_answer(options, {text});
        EXPECT_EQ(answer.problem, "");
        EXPECT_EQ(answer.text, "") << text;
        EXPECT_EQ(answer.whole, 1) << text;
        ASSERT_EQ(answer.calls.size(), 1u) << text;
        EXPECT_EQ(answer.calls[0], (JoinedCall{"get_weather", R"({"city": "Paris", "days": 3})", true}));
        EXPECT_EQ(check_answer(options, text, false, 3), "") << text;
      }
}

TEST(BareCall, behind_reasoning_too) {
  AnswerOptions options = sample_options(ToolDialect::hermes);
  options.reasoning = ReasoningMarkers{"<think>", "</think>"};
  for (const bool open : {true, false}) {
    options.reasoning_open = open;
    const std::string text = (open ? "" : "<think>") + std::string("\nI look.\n</think>\n\n") + kCall;
    const JoinedAnswer answer = read_answer(options, {text});
    EXPECT_EQ(answer.reasoning, "I look.");
    EXPECT_EQ(answer.text, "");
    EXPECT_EQ(answer.whole, 1);
    EXPECT_EQ(check_answer(options, text, false, 4), "");
  }
}

// An example, data that looks like a call, an answer that goes on, another dialect's JSON: all of it is text.
TEST(BareCall, everything_else_stays_text) {
  const std::vector<std::string> texts = {
      "Call it so: " + kCall,
      kCall + " does it.",
      kCall + "\n" + kCall,
      kCall + ",",
      "[" + kCall + "]",
      "```json\n" + kCall + "\n```\nThat is how.",
      "```json\n" + kCall + "\n``",
      "```json\n" + kCall,
      "```python\n" + kCall + "\n```",
      "```json5\n" + kCall + "\n```",
      "``" + kCall + "``",
      "<tools>\n" + kCall,
      "<tools>\n" + kCall + "\n</tool>",
      "<tool>\n" + kCall + "\n</tool>",
      "<tools>" + kCall + kCall + "</tools>",
      R"({"name": "nobody", "arguments": {}})",
      R"({"name": "now"})",
      R"({"name": "now", "arguments": null})",
      R"({"name": "now", "arguments": "{}"})",
      R"({"name": "now", "arguments": []})",
      R"({"name": "now", "parameters": {}})",
      R"({"name": "now", "arguments": {}, "id": 1})",
      R"({"type": "function", "name": "now", "arguments": {}})",
      R"({"function": {"name": "now", "arguments": {}}})",
      R"({"name": "now", "arguments": {"a": 1, "a": 2}})",
      R"({"name": "now", "arguments": {}})"
      ".",
      R"({"name": "now", "arguments": {})",
      "{",
      "```",
      "```json",
      "<tools>",
      "{}",
      "\n",
  };
  for (const ToolDialect dialect : {ToolDialect::hermes, ToolDialect::generic})
    for (const std::string& text : texts)
      for (const bool stream : {true, false}) {
        const AnswerOptions options = sample_options(dialect, stream);
        const JoinedAnswer answer = read_answer(options, {text});
        EXPECT_EQ(answer.text, text);
        EXPECT_EQ(answer.calls.size(), 0u) << text;
        EXPECT_EQ(check_answer(options, text, false, 5), "") << text;
      }
}

TEST(BareCall, cut_by_the_limit_it_is_text) {
  for (const std::string& text : bare_calls())
    for (size_t n = 0; n <= text.size(); ++n) {
      const JoinedAnswer answer = read_answer(sample_options(ToolDialect::hermes), {text.substr(0, n)}, true);
      ASSERT_EQ(answer.text, text.substr(0, n));
      ASSERT_EQ(answer.whole, 0);
    }
}

TEST(BareCall, other_families_and_answers_in_json_have_none) {
  for (const ToolDialect dialect :
       {ToolDialect::qwen3_coder, ToolDialect::minicpm5, ToolDialect::gemma4, ToolDialect::mistral})
    EXPECT_EQ(read_answer(sample_options(dialect), {kCall}).text, kCall);
  AnswerOptions options = sample_options(ToolDialect::hermes);
  options.bare_calls = false;
  EXPECT_EQ(read_answer(options, {kCall}).text, kCall);
  options = sample_options(ToolDialect::hermes);
  options.tools.clear();
  EXPECT_EQ(read_answer(options, {kCall}).text, kCall);
}

// Only as long as it can still be one.
TEST(BareCall, text_waits_no_longer_than_it_may_become_a_call) {
  const auto told = [](std::string_view text) {
    AnswerParser parser(sample_options(ToolDialect::hermes), Random(1));
    std::string out;
    for (const AnswerEvent& event : parser.push(text)) out += std::get<TextPiece>(event).text;
    return out;
  };
  EXPECT_EQ(told("A"), "A");
  EXPECT_EQ(told("{\"a"), "");
  EXPECT_EQ(told("{\"ap"), "{\"ap");
  EXPECT_EQ(told("{\"name\": \"no"), "");
  EXPECT_EQ(told("{\"name\": \"nob"), "{\"name\": \"nob");
  EXPECT_EQ(told("{\"name\": \"Bob\""), "{\"name\": \"Bob\"");
  EXPECT_EQ(told("{\"name\": \"now\""), "");
  EXPECT_EQ(told("```p"), "```p");
  EXPECT_EQ(told("```json\n{\"version\""), "```json\n{\"version\"");
  EXPECT_EQ(told(kCall + "\n."), kCall + "\n.");
}

TEST(BareCall, tagged_calls_are_found_behind_what_was_none) {
  const std::string tagged = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  for (const std::string& before :
       {std::string("{\"name\": \"no"), std::string("```json\n"), std::string("<tools>"), kCall})
    for (const bool stream : {true, false}) {
      const AnswerOptions options = sample_options(ToolDialect::hermes, stream);
      const JoinedAnswer answer = read_answer(options, {before + tagged});
      EXPECT_EQ(answer.whole, 1) << before;
      EXPECT_EQ(answer.text, std::string(tools::without_blanks(before)));
      EXPECT_EQ(check_answer(options, before + tagged, false, 6), "") << before;
    }
  // Calls behind a call are its own dialect's.
  const JoinedAnswer two = read_answer(sample_options(ToolDialect::hermes), {tagged + "\n" + kCall});
  EXPECT_EQ(two.whole, 1);
  EXPECT_EQ(two.text, kCall);
}

}  // namespace
}  // namespace hearth::text
