#include "text/tools/answer_parser.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "answer_samples.h"
#include "base/utf8.h"
#include "text/tools/call_reader.h"

namespace hearth::text {
namespace {

using test::check_answer;
using test::JoinedAnswer;
using test::JoinedCall;
using test::read_answer;

constexpr ToolDialect kDialects[] = {ToolDialect::hermes,  ToolDialect::qwen3_coder, ToolDialect::minicpm5,
                                     ToolDialect::gemma4,  ToolDialect::llama3,      ToolDialect::mistral,
                                     ToolDialect::generic, ToolDialect::mistral_args};

const ReasoningMarkers kThink{"<think>", "</think>"};
const ReasoningMarkers kChannel{"<|channel>thought", "<channel|>", true};

void expect_calls(const std::vector<JoinedCall>& found, const std::vector<JoinedCall>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, wanted[i].name);
    EXPECT_EQ(found[i].arguments, wanted[i].arguments);
    EXPECT_EQ(found[i].ended, wanted[i].ended);
  }
}

TEST(AnswerParser, reads_every_dialect_streamed_and_whole) {
  for (const Sample& sample : samples())
    for (const bool stream : {true, false}) {
      SCOPED_TRACE(sample.answer);
      const JoinedAnswer answer = read_answer(sample_options(sample.dialect, stream), {sample.answer});
      EXPECT_EQ(answer.problem, "");
      EXPECT_EQ(answer.text, sample.text);
      expect_calls(answer.calls, sample.calls);
      EXPECT_EQ(answer.whole, static_cast<int>(sample.calls.size()));
      EXPECT_FALSE(answer.cut);
    }
}

TEST(AnswerParser, every_cut_gives_the_same_events) {
  for (const Sample& sample : samples())
    for (const bool stream : {true, false}) {
      AnswerOptions options = sample_options(sample.dialect, stream);
      options.reasoning = kThink;
      const std::string answer = "<think>\n Is it <tool_call>? \n</think>\n\n" + sample.answer;
      const JoinedAnswer want = read_answer(options, {answer});
      EXPECT_EQ(want.reasoning, "Is it <tool_call>?");
      EXPECT_EQ(want.text, sample.text) << answer;
      const std::string_view all = answer;
      for (size_t cut = 0; cut <= all.size(); ++cut)
        ASSERT_EQ(read_answer(options, {all.substr(0, cut), all.substr(cut)}).events, want.events)
            << answer << " cut at " << cut;
      for (uint64_t seed = 0; seed < 8; ++seed)
        ASSERT_EQ(check_answer(options, answer, false, seed), "") << answer << " seed " << seed;
    }
}

// Wherever the limit cuts an answer, calls before it are whole, the one it cuts is none, and without a grammar its
// markup is text.
TEST(AnswerParser, a_call_cut_by_the_limit_is_none) {
  for (const Sample& sample : samples())
    for (size_t cut = 0; cut < sample.answer.size(); ++cut) {
      const std::string_view text = std::string_view(sample.answer).substr(0, cut);
      for (const bool stream : {true, false}) {
        AnswerOptions options = sample_options(sample.dialect, stream);
        ASSERT_EQ(check_answer(options, text, true, cut), "") << text;
        const JoinedAnswer answer = read_answer(options, {text}, true);
        ASSERT_LE(answer.whole, static_cast<int>(sample.calls.size())) << text;
        for (int i = 0; i < answer.whole; ++i)
          ASSERT_EQ(answer.calls[static_cast<size_t>(i)], sample.calls[static_cast<size_t>(i)]) << text;
        if (answer.whole < static_cast<int>(answer.calls.size())) {
          ASSERT_TRUE(answer.cut) << text;
        }
      }
    }
}

// The first marker of a sample's calls, where its markup begins with one, and where that stands.
std::string_view opener_of(const Sample& sample, size_t& at) {
  for (const std::string_view opener : tools::openers(sample.dialect))
    if (opener != "{" && !sample.calls.empty() && (at = sample.answer.find(opener)) != std::string::npos) return opener;
  return {};
}

// Half a marker may be text, so it is; what a grammar keeps in shape behind a whole one can only be a call.
TEST(AnswerParser, markup_of_a_cut_call_is_no_text_where_a_grammar_keeps_it_in_shape) {
  size_t markers = 0;
  for (const Sample& sample : samples()) {
    size_t at = 0;
    const std::string_view opener = opener_of(sample, at);
    if (opener.empty() || opener != tool_shape(sample.dialect).opener) continue;
    ++markers;
    const std::string_view all = sample.answer, before = all.substr(0, all.find_last_not_of(" \n", at - 1) + 1);
    for (size_t cut = at + 1; cut < all.size(); ++cut) {
      const std::string_view text = all.substr(0, cut);
      const JoinedAnswer shaped = read_answer(sample_options(sample.dialect, true), {text}, true);
      const JoinedAnswer held = read_answer(sample_options(sample.dialect, false), {text}, true);
      if (cut < at + opener.size()) {
        EXPECT_EQ(shaped.text, text) << "half a marker is what it says";
        EXPECT_EQ(held.text, text);
        continue;
      }
      if (held.whole > 0) break;  // the first call is whole
      EXPECT_EQ(shaped.text, at == 0 ? "" : before) << text;
      EXPECT_EQ(held.text, text) << "without a grammar it may be no call";
      EXPECT_TRUE(shaped.cut && held.cut) << text;
    }
  }
  EXPECT_GE(markers, 10u);
}

// Where the answer can be nothing but calls, no part of one is text, and no part of a marker.
TEST(AnswerParser, a_cut_answer_of_calls_alone_has_no_text) {
  for (const Sample& sample : samples()) {
    if (sample.calls.empty() || !sample.text.empty()) continue;
    for (size_t cut = 0; cut < sample.answer.size(); ++cut)
      for (const bool stream : {true, false}) {
        AnswerOptions options = sample_options(sample.dialect, stream);
        options.calls_only = true;
        const std::string_view text = std::string_view(sample.answer).substr(0, cut);
        const JoinedAnswer answer = read_answer(options, {text}, true);
        ASSERT_EQ(answer.text, "") << text;
        ASSERT_EQ(answer.problem, "") << text;
        options.reasoning = kThink;
        options.reasoning_open = true;
        const std::string thought = "Well.</think>\n" + std::string(text);
        const JoinedAnswer behind = read_answer(options, {thought}, true);
        ASSERT_EQ(behind.text, "") << text;
        ASSERT_EQ(behind.reasoning, "Well.") << text;
      }
  }
}

// Special tokens never spell text: half a marker that begins with one is dropped, for every way of cutting it.
TEST(AnswerParser, half_a_marker_of_special_tokens_is_no_text_when_it_is_cut) {
  AnswerOptions options;
  options.reasoning = kChannel;
  const std::string_view marker = "<|channel>thought";
  for (const bool known : {true, false}) {
    if (known) options.control = {"<|channel>", "<channel|>"};
    else options.control.clear();
    for (size_t n = std::string_view("<|channel>").size(); n < marker.size(); ++n) {
      const std::string text = "Yes. " + std::string(marker.substr(0, n));
      EXPECT_EQ(read_answer(options, {text}, true).text, known ? "Yes. " : text);
      EXPECT_EQ(read_answer(options, {text}, false).text, text) << "it ended so by itself";
    }
    EXPECT_EQ(read_answer(options, {"Yes. <|chan"}, true).text, "Yes. <|chan") << "no token spells half of itself";
  }
}

// Cut inside of its closing marker all of it is reasoning; inside of its opening one it is text.
TEST(AnswerParser, half_a_marker_of_reasoning_keeps_its_side) {
  for (const ReasoningMarkers& markers : {kThink, kChannel, ReasoningMarkers{"[THINK]", "[/THINK]", true}})
    for (const bool tools : {true, false}) {
      AnswerOptions options = tools ? sample_options(ToolDialect::hermes) : AnswerOptions();
      options.reasoning = markers;
      for (size_t n = 1; n < markers.close.size(); ++n) {
        const std::string half = markers.close.substr(0, n);
        const JoinedAnswer answer = read_answer(options, {markers.open + "Hm. " + half}, true);
        EXPECT_EQ(answer.reasoning, "Hm. " + half);
        EXPECT_EQ(answer.text, "");
      }
      for (size_t n = 1; n < markers.open.size(); ++n) {
        const JoinedAnswer answer = read_answer(options, {markers.open.substr(0, n)}, true);
        EXPECT_EQ(answer.reasoning, "");
        EXPECT_EQ(answer.text, markers.open.substr(0, n));
      }
    }
}

TEST(AnswerParser, only_the_closing_marker_may_be_missing_at_the_end) {
  const std::string open = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}";
  for (const bool stream : {true, false}) {
    const AnswerOptions options = sample_options(ToolDialect::hermes, stream);
    for (const char* tail : {"", "\n", "\n</tool_c"}) {
      EXPECT_EQ(read_answer(options, {open + tail}, false).whole, 1);
      const JoinedAnswer cut = read_answer(options, {open + tail}, true);
      EXPECT_EQ(cut.whole, 0);
      EXPECT_TRUE(cut.cut);
      EXPECT_EQ(cut.text, stream ? "" : open + tail);
    }
    const JoinedAnswer broken = read_answer(options, {open.substr(0, open.size() - 1)}, false);
    EXPECT_EQ(broken.whole, 0);
    EXPECT_TRUE(broken.cut);
  }
}

TEST(AnswerParser, every_dialect_may_lack_its_closing_marker_at_the_end) {
  using enum ToolDialect;
  for (const auto& [dialect, text] :
       std::vector<std::pair<ToolDialect, std::string>>{{gemma4, "<|tool_call>call:now{}"},
                                                        {qwen3_coder, "<tool_call>\n<function=now>\n</function>"},
                                                        {hermes, "<tool_call>[{\"name\": \"now\"}"},
                                                        {mistral, "[TOOL_CALLS] [{\"name\": \"now\"}"}}) {
    const JoinedAnswer answer = read_answer(sample_options(dialect, false), {text}, false);
    EXPECT_EQ(answer.whole, 1) << text;
    EXPECT_EQ(answer.text, "") << text;
    EXPECT_FALSE(answer.cut) << text;
    const JoinedAnswer cut = read_answer(sample_options(dialect, false), {text.substr(0, text.size() - 1)}, false);
    EXPECT_EQ(cut.whole, 0) << text;
    EXPECT_TRUE(cut.cut) << text;
  }
}

TEST(AnswerParser, streams_arguments_as_they_come) {
  AnswerParser parser(sample_options(ToolDialect::qwen3_coder), Random(1));
  EXPECT_TRUE(parser.push("<tool_call>\n<function=write_file").empty());
  auto events = parser.push(">\n<parameter=content>\nline 1\nli");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<ToolBegin>(events[0]).name, "write_file");
  EXPECT_EQ(std::get<ToolArguments>(events[1]).fragment, R"({"content": "line 1\nli)");
  events = parser.push("ne 2\n</para");  // the break and what may be the closing tag wait
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<ToolArguments>(events[0]).fragment, "ne 2");
  events = parser.push("graph>\n</parameter>\n</function>");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<ToolArguments>(events[0]).fragment, R"(\n</paragraph>"})");
  events = parser.push("\n</tool_call>");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<ToolEnd>(events[0]).index, 0);
}

TEST(AnswerParser, text_that_resembles_markers_arrives_whole) {
  const std::vector<std::string> texts = {
      "<",
      "a < b <tool_cal",
      "<tool_call",
      "<tool_call>",
      "<tool_call> is a tag",
      "<tool_call>\n{\"name\": \"nobody\", \"arguments\": {}}\n</tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1,}}</tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1, \"a\": 2}}</tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": \"x\"}</tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"\\d\"}}</tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1e999}}</tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": {}} and more </tool_call>",
      "<tool_call>{\"name\": \"now\", \"arguments\": {}, \"parameters\": {}}</tool_call>",
      "<tool_call>{\"name\": \"now\", \"name\": \"now\"}</tool_call>",
      "<tool_call>{'name': 'now'}</tool_call>",
      "<tool_call><function=now></tool_call>",
      "<function=nobody></function>",
      "<functional> <function names=\"now\"> <function name=now> <function name=\"now\">x</function>",
      "<function name=\"now\"><param>x</param></function>",
      "<|tool_call>call:now{a:b}<tool_call|> <|tool_call>now{}<tool_call|> <|tool",
      "<|tool_call>call:now{a:<|\"|>x}<tool_call|>",
      "<|tool_call>call:now{a:1}</tool_call>",
      "[TOOL_CALLS] now [TOOL_CALLS]nobody[ARGS]{} [TOOL_CALLS] [] [TOOL_CALLS]now[ARG]{} [TOOL",
      "{\"name\": \"nobody\", \"parameters\": {}}",
      "{\"name\": \"now\"",
      "\n\n {",
      "  ",
      "</think> <|channel>thought </tool_call>;",
      "Grüße <tool_call>\xe2\x82\xac</tool_call> \xf0\x9f\x98\x80",
  };
  for (const ToolDialect dialect : kDialects)
    for (const std::string& text : texts)
      for (uint64_t seed = 0; seed < 3; ++seed) {
        ASSERT_EQ(check_answer(sample_options(dialect), text, false, seed), "") << name_of(dialect) << ": " << text;
        ASSERT_EQ(check_answer(sample_options(dialect, false), text, true, seed), "")
            << name_of(dialect) << ": " << text;
      }
  // Those that are calls in no dialect are text in each.
  for (const ToolDialect dialect : kDialects)
    for (const std::string& text :
         {texts[3], texts[4], texts[5], texts[15], texts[16], texts[18], texts[24], texts[25]})
      EXPECT_EQ(read_answer(sample_options(dialect, false), {text}, true).text, text) << name_of(dialect);
  for (size_t i = 5; i < 15; ++i) {
    EXPECT_EQ(read_answer(sample_options(ToolDialect::hermes, false), {texts[i]}).text, texts[i]);
  }
}

TEST(AnswerParser, a_call_behind_broken_markup_is_read) {
  const std::string good = "<tool_call>{\"name\": \"now\"}</tool_call>";
  for (const char* before :
       {"<tool_call>", "<tool_call>{", "<tool_call>{\"name\": \"no\"", "<tool_call>x", "<tool_ca"}) {
    const JoinedAnswer answer = read_answer(sample_options(ToolDialect::hermes, false), {before + good});
    EXPECT_EQ(answer.text, before);
    EXPECT_EQ(answer.whole, 1) << before;
  }
}

TEST(AnswerParser, nothing_of_an_empty_or_broken_list_is_lost) {
  for (const std::string text : {"[TOOL_CALLS] [", "[TOOL_CALLS] []", "[TOOL_CALLS] [{\"name\": \"nobody\"}]"})
    for (const bool stream : {true, false})
      for (const bool cut : {true, false}) {
        const bool is_cut_call = stream && cut && text.ends_with('[');
        EXPECT_EQ(read_answer(sample_options(ToolDialect::mistral, stream), {text}, cut).text, is_cut_call ? "" : text);
      }
  const JoinedAnswer list = read_answer(sample_options(ToolDialect::mistral, false),
                                        {"[TOOL_CALLS][{\"name\": \"now\"}, {\"name\": \"nobody\"}]"});
  EXPECT_EQ(list.whole, 1);
  EXPECT_EQ(list.text, ", {\"name\": \"nobody\"}]");
  // A list that ends behind a comma is whole calls and nothing else.
  const JoinedAnswer open =
      read_answer(sample_options(ToolDialect::mistral, false), {"[TOOL_CALLS][{\"name\": \"now\"}, "}, true);
  EXPECT_EQ(open.whole, 1);
  EXPECT_EQ(open.text, "");
  EXPECT_FALSE(open.cut);
  const JoinedAnswer xml =
      read_answer(sample_options(ToolDialect::qwen3_coder, false),
                  {"<tool_call><function=now></function><function=nobody></function></tool_call>"});
  EXPECT_EQ(xml.whole, 1);
  EXPECT_EQ(xml.text, "<function=nobody></function></tool_call>");
}

TEST(AnswerParser, broken_markup_leaves_nothing_behind) {
  const JoinedAnswer answer = read_answer(
      sample_options(ToolDialect::mistral, false),
      {"[TOOL_CALLS]now{s.[TOOL_CALLS] [{\"id\": 1, \"name\": \"search\", \"arguments\": {\"zip\": \"1\"}}]"});
  EXPECT_EQ(answer.text, "[TOOL_CALLS]now{s.");
  expect_calls(answer.calls, {{"search", R"({"zip": "1"})", true}});
  for (const Sample& sample : samples()) {
    if (sample.calls.empty() || sample.dialect == ToolDialect::llama3) continue;
    for (size_t cut = 0; cut < sample.answer.size(); ++cut) {
      const std::string text = sample.answer.substr(0, cut) + "\x01\x01" + sample.answer;
      ASSERT_EQ(check_answer(sample_options(sample.dialect, false), text, false, cut), "") << text;
    }
  }
}

// No grammar kept it in shape: what was told cannot be taken back, the call stays open and text goes on.
TEST(AnswerParser, a_streamed_call_that_breaks_has_no_end) {
  const JoinedAnswer answer = read_answer(
      sample_options(ToolDialect::hermes),
      {"<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": oops}} then <tool_call>{\"name\": \"now\"}</tool_call>"});
  ASSERT_EQ(answer.calls.size(), 2u);
  EXPECT_FALSE(answer.calls[0].ended);
  EXPECT_TRUE(answer.calls[1].ended);
  EXPECT_EQ(answer.whole, 1);
  EXPECT_EQ(answer.problem, "");
}

TEST(AnswerParser, one_call_is_enough_without_parallel_calls) {
  for (const Sample& sample : samples()) {
    if (sample.calls.empty()) continue;
    for (const bool stream : {true, false}) {
      AnswerOptions options = sample_options(sample.dialect, stream);
      options.parallel_calls = false;
      AnswerParser parser(options, Random(3));
      const auto events = parser.push(sample.answer + " and more");
      EXPECT_TRUE(parser.stopped());
      EXPECT_TRUE(std::holds_alternative<ToolEnd>(events.back())) << sample.answer;
      EXPECT_TRUE(parser.push("text").empty());
      const AnswerParser::End end = parser.finish(false);
      EXPECT_TRUE(end.events.empty());
      EXPECT_EQ(end.calls, 1);
    }
  }
}

// Pieces that end with whole characters make events that do.
TEST(AnswerParser, every_event_is_utf8) {
  const std::string wide = "é€😀";
  for (const Sample& sample : samples()) {
    std::string text = "<think>" + wide + "</thi" + wide + "</think>" + wide + "<" + wide + sample.answer + wide;
    for (const bool stream : {true, false}) {
      AnswerOptions options = sample_options(sample.dialect, stream);
      options.reasoning = kThink;
      AnswerParser parser(options, Random(1));
      std::vector<AnswerEvent> events;
      for (size_t at = 0, n = 0; at < text.size(); at += n) {
        n = utf8_start(std::string_view(text).substr(at)).needed;
        for (AnswerEvent& event : parser.push(std::string_view(text).substr(at, n))) events.push_back(std::move(event));
      }
      for (AnswerEvent& event : parser.finish(false).events) events.push_back(std::move(event));
      for (const AnswerEvent& event : events) {
        const auto* piece = std::get_if<TextPiece>(&event);
        const auto* thought = std::get_if<ReasoningPiece>(&event);
        const auto* arguments = std::get_if<ToolArguments>(&event);
        const std::string said = piece ? piece->text : thought ? thought->text : arguments ? arguments->fragment : "";
        EXPECT_TRUE(is_utf8(said)) << text;
      }
    }
  }
}

TEST(AnswerParser, without_tools_markup_is_text) {
  for (const Sample& sample : samples()) {
    AnswerOptions options = sample_options(sample.dialect);
    options.tools.clear();
    EXPECT_EQ(read_answer(options, {sample.answer}).text, sample.answer);
    AnswerParser parser(options, Random(1));
    std::string told;
    for (const AnswerEvent& event : parser.push("  <tool_call>\n ")) told += std::get<TextPiece>(event).text;
    EXPECT_EQ(told, "  <tool_call>\n ");  // nothing is held back
  }
}

TEST(AnswerParser, ids_come_from_the_given_source) {
  const std::string calls = "<tool_call>{\"name\": \"now\"}</tool_call><tool_call>{\"name\": \"now\"}</tool_call>";
  const auto ids = [&](uint64_t seed) {
    std::vector<std::string> out;
    AnswerParser parser(sample_options(ToolDialect::hermes), Random(seed));
    for (const AnswerEvent& event : parser.push(calls))
      if (const auto* begin = std::get_if<ToolBegin>(&event)) out.push_back(begin->id);
    return out;
  };
  ASSERT_EQ(ids(1).size(), 2u);
  EXPECT_NE(ids(1)[0], ids(1)[1]);
  EXPECT_EQ(ids(1), ids(1));
  EXPECT_NE(ids(1), ids(2));
}

// ---- reasoning

struct Thought {
  std::string answer, reasoning, text;
};

void expect_thoughts(const AnswerOptions& options, const std::vector<Thought>& thoughts) {
  for (const Thought& want : thoughts) {
    SCOPED_TRACE(want.answer);
    for (const bool cut : {true, false}) {
      const JoinedAnswer answer = read_answer(options, {want.answer}, cut);
      EXPECT_EQ(answer.reasoning, want.reasoning);
      EXPECT_EQ(answer.text, want.text);
      EXPECT_EQ(check_answer(options, want.answer, cut, 5), "");
    }
  }
}

TEST(AnswerParser, reasoning_stands_apart) {
  AnswerOptions options;
  options.reasoning = kThink;
  expect_thoughts(options,
                  {{"<think>\nHm, 1 < 2.\n\nYes.\n</think>\n\nIt is so.\n", "Hm, 1 < 2.\n\nYes.", "It is so.\n"},
                   {"<think>\n\n</think>\n\nNo thought.", "", "No thought."},
                   {"  \n<think>a</think>b", "a", "b"},
                   {"Plain <think>text</think>", "", "Plain <think>text</think>"},
                   {"<thinking>x", "", "<thinking>x"},
                   {"<think>never closed </thin", "never closed </thin", ""},
                   {"<think>", "", ""},
                   {" \n", "", " \n"},
                   {"<think>a </think></think> b", "a", "</think> b"}});
  options.reasoning_open = true;
  expect_thoughts(options, {{"\nI see.\n</think>\n\nSo.", "I see.", "So."},
                            {"cut short ", "cut short ", ""},
                            {"a <think> b </think>c", "a <think> b", "c"}});
  options = {};
  options.reasoning = kChannel;
  expect_thoughts(options, {{"<|channel>thought\nHm.\n<channel|>Yes.", "Hm.", "Yes."},
                            {"Well, <|channel>thought\nHm.<channel|>yes.", "Hm.", "Well, yes."},
                            {"<|channel>final", "", "<|channel>final"}});
}

TEST(AnswerParser, reasoning_and_calls_combine) {
  for (const bool stream : {true, false}) {
    AnswerOptions options = sample_options(ToolDialect::hermes, stream);
    options.reasoning = kThink;
    options.reasoning_open = true;
    const JoinedAnswer answer = read_answer(
        options,
        {"I may <tool_call>{\"name\": \"now\"}</tool_call> here.\n</think>\n\n<tool_call>\n{\"name\": \"now\"}\n"
         "</tool_call>"});
    EXPECT_EQ(answer.reasoning, "I may <tool_call>{\"name\": \"now\"}</tool_call> here.");
    EXPECT_EQ(answer.text, "");
    EXPECT_EQ(answer.whole, 1);
  }
  AnswerOptions options = sample_options(ToolDialect::gemma4);
  options.reasoning = kChannel;
  const JoinedAnswer answer = read_answer(
      options,
      {"<|channel>thought\nUse it.<channel|><|tool_call>call:now{}<tool_call|><|channel>thought\nAgain.<channel|>"
       "<|tool_call>call:now{}<tool_call|>"});
  EXPECT_EQ(answer.reasoning, "Use it.Again.");
  EXPECT_EQ(answer.whole, 2);
  EXPECT_EQ(answer.text, "");
}

// ---- properties

// Pieces of markup in any order: what a confused model may write.
TEST(AnswerParser, random_markup_keeps_the_rules) {
  std::mt19937 random(17);
  for (const ToolDialect dialect : kDialects) {
    std::vector<std::string> pieces = {"<think>",
                                       "</think>",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       ",",
                                       ":",
                                       " ",
                                       "\n",
                                       "<",
                                       "a",
                                       "\\",
                                       "\"name\"",
                                       "\"now\"",
                                       "\"arguments\"",
                                       "{}",
                                       "\xc3\xa9",
                                       "<tool_call>",
                                       "</tool_call>"};
    for (const Sample& sample : samples()) {
      if (sample.dialect != dialect) continue;
      for (size_t at = 0, n = 0; at < sample.answer.size(); at += n)
        pieces.push_back(sample.answer.substr(at, n = 1 + random() % 16));
      pieces.push_back(sample.answer);
      pieces.push_back(sample.answer.substr(0, random() % sample.answer.size()));
    }
    for (int round = 0; round < 1500; ++round) {
      AnswerOptions options = sample_options(dialect, random() % 2);
      options.parallel_calls = random() % 4;
      if (random() % 3 == 0) options.reasoning = ReasoningMarkers{"<think>", "</think>", random() % 2 == 0};
      options.reasoning_open = random() % 2;
      std::string text;
      for (unsigned n = 1 + random() % 12; n > 0; --n) text += pieces[random() % pieces.size()];
      ASSERT_EQ(check_answer(options, text, random() % 2, random()), "")
          << name_of(dialect) << " round " << round << ": " << text;
    }
  }
}

// Each of these took minutes if some part of the text were read again at every byte.
TEST(AnswerParser, a_mebibyte_takes_linear_time) {
  struct Long {
    ToolDialect dialect;
    std::string begin, again;
  };
  using enum ToolDialect;
  const std::string value = "<tool_call><function=write_file><parameter=content>";
  const std::string attribute = "<function name=\"write_file\"><param name=\"path\">";
  const std::vector<Long> texts = {
      {hermes, "", " "},
      {hermes, "", "<"},
      {hermes, "a", " \n"},
      {hermes, "<think>", " \n"},
      {hermes, "", "<tool_call>"},
      {hermes, "", "<tool_call>{\"name\""},
      {hermes, "<tool_call>{\"name\": \"", "now"},
      {hermes, "<tool_call>{\"name\": \"search\", \"arguments\": {\"query\": \"", "\\u00e9"},
      {hermes, "<tool_call>{\"name\": \"now\"}", " "},
      {qwen3_coder, "", value},
      {qwen3_coder, value, "</parameter> "},
      {qwen3_coder, value + "</parameter>", " "},
      {qwen3_coder, "<tool_call><function=search><parameter=limit>", "[1,"},
      {minicpm5, attribute, "&"},
      {minicpm5, attribute, attribute},
      {minicpm5, attribute + "<![CDATA[", "]"},
      {minicpm5, attribute + "<![CDATA[", "]]> "},
      {gemma4, "<|tool_call>call:write_file{path:<|\"|>", "<|\"|"},
      {gemma4, "<|tool_call>call:search{query:", "a b"},
      {gemma4, "", "<|tool_call>call:now{a:"},
      {llama3, "{\"name\": \"search\", \"parameters\": {\"limit\": ", "1"},
      {llama3, "", "{\"name\": \"now\"};"},
      {mistral, "", "[TOOL_CALLS][{"},
      {mistral, "[TOOL_CALLS][{\"name\": \"now\"}", ", {\"name\": \"now\"}"}};
  for (const Long& test : texts)
    for (const bool stream : {true, false}) {
      std::string text = test.begin;
      while (text.size() < (stream ? 1u << 18 : 1u << 20)) text += test.again;
      AnswerOptions options = sample_options(test.dialect, stream);
      options.reasoning = kThink;
      const auto begin = std::chrono::steady_clock::now();
      AnswerParser parser(options, Random(1));
      for (size_t at = 0; at < text.size(); at += 5) parser.push(std::string_view(text).substr(at, 5));
      parser.finish(false);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      ASSERT_LT(took.count(), 5.0) << test.begin << " " << test.again;
    }
}

}  // namespace
}  // namespace hearth::text
