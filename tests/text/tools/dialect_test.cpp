#include "text/tools/dialect.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "answer_samples.h"
#include "support/outcome.h"

namespace hearth::text {
namespace {

using enum ToolDialect;

constexpr ToolDialect kDialects[] = {hermes, qwen3_coder, minicpm5, gemma4, llama3, mistral, mistral_args, generic};

std::string stored_template(const std::string& name) {
  std::ifstream file(HEARTH_TESTS_DIR "/text/templates/" + name + ".jinja");
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

const auto kNoPiece = [](std::string_view) { return false; };

TEST(ToolDialect, names_lead_back) {
  for (const ToolDialect dialect : kDialects) EXPECT_EQ(tool_dialect(name_of(dialect)), dialect);
  EXPECT_EQ(test::outcome([] { tool_dialect("qwen\n"); }),
            "invalid_argument: tool dialect \"qwen\\x0a\" is not one of hermes, qwen3-coder, minicpm5, gemma4, llama3, "
            "mistral, mistral-args, generic");
}

TEST(ToolDialect, is_chosen_by_the_template) {
  for (const auto& [name, want] : std::vector<std::pair<std::string, ToolDialect>>{{"hermes_tools", hermes},
                                                                                   {"qwen25", hermes},
                                                                                   {"qwen3", hermes},
                                                                                   {"xml_tools", qwen3_coder},
                                                                                   {"llama3", llama3},
                                                                                   {"mistral_tools", mistral},
                                                                                   {"function_macros", generic},
                                                                                   {"chatml", generic},
                                                                                   {"gemma3", generic},
                                                                                   {"zephyr", generic}})
    EXPECT_EQ(choose_dialect(stored_template(name), kNoPiece), want) << name;
  EXPECT_EQ(
      choose_dialect("{% if tools %}<function name=\"n\"><param name=\"p\">v</param></function>{% endif %}", kNoPiece),
      minicpm5);
  EXPECT_EQ(choose_dialect("{% for t in tools %}{% endfor %}{{ '<|tool_call>call:' + name + '{' }}", kNoPiece), gemma4);
  EXPECT_EQ(choose_dialect("{% if tools %}{{ '[TOOL_CALLS]' + name + '[ARGS]' }}{% endif %}", kNoPiece), mistral_args);
  EXPECT_EQ(choose_dialect("{% if tools %}<tool_call>n<arg_key>k</arg_key></tool_call>{% endif %}", kNoPiece), generic);
}

TEST(ToolDialect, is_chosen_by_the_vocabulary_when_the_template_spells_nothing) {
  const auto chosen = [](std::vector<std::string_view> pieces, std::string_view source = "{{ tools }}") {
    return choose_dialect(
        source, [&](std::string_view piece) { return std::find(pieces.begin(), pieces.end(), piece) != pieces.end(); });
  };
  EXPECT_EQ(chosen({"<|tool_call>", "<tool_call|>"}), gemma4);
  EXPECT_EQ(chosen({"<function", "<param"}), minicpm5);
  EXPECT_EQ(chosen({"[TOOL_CALLS]"}), mistral);
  EXPECT_EQ(chosen({"[TOOL_CALLS]", "[ARGS]"}), mistral_args);
  EXPECT_EQ(chosen({"<|python_tag|>"}), llama3);
  EXPECT_EQ(chosen({"<tool_call>"}), hermes);
  EXPECT_EQ(chosen({}), generic);
  EXPECT_EQ(chosen({"<tool_call>"}, "{{ messages }}"), generic);  // it would not show the tools
}

// Markup built from the shape says what it was built from.
TEST(ToolShape, is_what_the_parser_reads) {
  for (const ToolDialect dialect : kDialects) {
    const ToolShape shape = tool_shape(dialect);
    const auto call = [&](std::string_view city, std::string_view days) {
      std::string out = fmt::format("{}get_weather{}", shape.before_name, shape.after_name);
      switch (shape.form) {
        case ArgumentForm::json_object: out += fmt::format(R"({{"city": "{}", "days": {}}})", city, days); break;
        case ArgumentForm::gemma_values: out += fmt::format("{{city:<|\"|>{}<|\"|>,days:{}}}", city, days); break;
        case ArgumentForm::xml_parameters:
          for (const auto& [key, value] :
               std::vector<std::pair<std::string_view, std::string_view>>{{"city", city}, {"days", days}})
            out += fmt::format("{}{}{}{}{}{}{}", shape.before_key, key, shape.after_key,
                               key == "city" ? shape.quote_open : "", value, key == "city" ? shape.quote_close : "",
                               shape.after_value);
      }
      return out + std::string(shape.after_arguments);
    };
    const std::string markup = std::string(shape.opener) + std::string(shape.list_open) + call("Rome <&", "1") +
                               std::string(shape.between) + call("Oslo", "-2") + std::string(shape.closer);
    for (const bool stream : {true, false}) {
      const test::JoinedAnswer answer = test::read_answer(sample_options(dialect, stream), {"Well:\n" + markup});
      EXPECT_EQ(answer.problem, "");
      EXPECT_EQ(answer.text, "Well:") << markup;
      ASSERT_EQ(answer.whole, 2) << markup;
      EXPECT_EQ(answer.calls[0], (test::JoinedCall{"get_weather", R"({"city": "Rome <&", "days": 1})", true}));
      EXPECT_EQ(answer.calls[1], (test::JoinedCall{"get_weather", R"({"city": "Oslo", "days": -2})", true}));
    }
    if (shape.opener_optional) {
      EXPECT_EQ(test::read_answer(sample_options(dialect), {markup.substr(shape.opener.size())}).whole, 2);
    }
  }
}

TEST(Reasoning, markers_are_chosen_by_template_and_vocabulary) {
  const ReasoningMarkers think{"<think>", "</think>"};
  EXPECT_EQ(choose_reasoning(stored_template("qwen3"), kNoPiece), think);
  EXPECT_EQ(choose_reasoning(stored_template("zephyr"), kNoPiece), std::nullopt);
  EXPECT_EQ(choose_reasoning("{{ '<|channel>thought\n<channel|>' }}", kNoPiece),
            (ReasoningMarkers{"<|channel>thought", "<channel|>", true}));
  EXPECT_EQ(choose_reasoning("", [](std::string_view piece) { return piece == "<think>" || piece == "</think>"; }),
            think);
  EXPECT_EQ(choose_reasoning("", [](std::string_view piece) { return piece == "<think>"; }), std::nullopt);
}

TEST(Reasoning, is_open_when_the_prompt_ends_with_the_marker) {
  const ReasoningMarkers think{"<think>", "</think>"};
  EXPECT_TRUE(opens_reasoning(think, "<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(opens_reasoning(think, "<think>"));
  EXPECT_FALSE(opens_reasoning(think, "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning(think, "What is <think>?<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_FALSE(opens_reasoning(think, ""));
}

}  // namespace
}  // namespace hearth::text
