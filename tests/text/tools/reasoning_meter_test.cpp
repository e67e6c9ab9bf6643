#include "text/tools/reasoning_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::text {
namespace {

using Tokens = std::vector<std::string_view>;

const ReasoningMarkers kThink{"<think>", "</think>"};
const ReasoningMarkers kChannel{"<|channel>thought", "<channel|>", true};

ReasoningMeter meter(bool open, const ReasoningMarkers& markers = kThink) {
  AnswerOptions options;
  options.reasoning = markers;
  options.reasoning_open = open;
  return ReasoningMeter(std::move(options));
}

int64_t counted(ReasoningMeter m, const Tokens& tokens) {
  for (const std::string_view token : tokens) m.push(token);
  return m.tokens();
}

TEST(ReasoningMeter, counts_what_stands_between_the_markers) {
  EXPECT_EQ(counted(meter(false), {"<think>", "I", " see", ".", "</think>", "\n\n", "Yes"}), 3);
  EXPECT_EQ(counted(meter(true), {"I", " see", ".", "</think>", "\n\n", "Yes", "<think>", "no"}), 3);
  EXPECT_EQ(counted(meter(false), {"\n", "<", "th", "ink", ">", "\n", "I", "</", "think", ">", "Yes"}), 2);
  EXPECT_EQ(counted(meter(false), {"Yes", "<think>", "I", "</think>"}), 0) << "an answer may speak of <think>";
  EXPECT_EQ(counted(meter(false, kChannel), {"A", "<|channel>", "thought", "b", "<channel|>", "C", "<|channel>thought",
                                             "d", "e", "<channel|>"}),
            3);
  EXPECT_EQ(counted(meter(true), {"a", "", "b"}), 3) << "a token without text is one as well";
}

TEST(ReasoningMeter, parts_of_the_closing_marker_count_until_it_is_whole) {
  ReasoningMeter m = meter(true);
  const auto push = [&](std::string_view token) {
    m.push(token);
    return std::tuple(m.tokens(), m.closing(), m.inside());
  };
  EXPECT_EQ(push("a"), std::tuple(1, 0u, true));
  EXPECT_EQ(push("b<"), std::tuple(2, 1u, true)) << "a token that holds reasoning besides is settled";
  EXPECT_EQ(push("/"), std::tuple(3, 2u, true));
  EXPECT_EQ(push("th"), std::tuple(4, 4u, true));
  EXPECT_EQ(push("<"), std::tuple(5, 1u, true)) << "it was none, and another may begin";
  EXPECT_EQ(push("/think"), std::tuple(6, 7u, true));
  EXPECT_EQ(push(">."), std::tuple(4, 0u, false));
  EXPECT_EQ(push("x"), std::tuple(4, 0u, false));
}

TEST(ReasoningMeter, a_marker_may_begin_inside_of_the_token_that_ends_it) {
  EXPECT_EQ(counted(meter(true), {"a", ".</think>"}), 2);
  EXPECT_EQ(counted(meter(true), {"a", "</th", "</think>"}), 2) << "a part of one, then a whole one";
  EXPECT_EQ(counted(meter(true), {"a", "</", ".</think>"}), 3);
}

// Every way of cutting: a byte counts with the token that it begins in.
TEST(ReasoningMeter, agrees_with_the_definition_for_every_cut) {
  const std::string text = " a<</thin</think>b";
  const size_t begin = text.find("</think>");
  for (uint32_t cuts = 0; cuts < 1u << (text.size() - 1); cuts += 1 + cuts % 7) {
    ReasoningMeter m = meter(true);
    int64_t want = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = at + 1;
      while (end < text.size() && (cuts >> (end - 1) & 1) == 0) ++end;
      want += at < begin;
      m.push(std::string_view(text).substr(at, end - at));
      at = end;
    }
    ASSERT_EQ(m.tokens(), want) << cuts;
    ASSERT_FALSE(m.inside());
  }
}

}  // namespace
}  // namespace hearth::text
