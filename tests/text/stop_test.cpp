#include "text/stop.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace hearth::text {
namespace {

struct Outcome {
  std::string text;
  std::optional<size_t> which;
  bool operator==(const Outcome&) const = default;
};

// By definition: the match that ends first, the longest of those; quadratic and obvious.
Outcome reference(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i)
      if (end >= stops[i].size() && text.compare(end - stops[i].size(), stops[i].size(), stops[i]) == 0 &&
          (!best || stops[i].size() > stops[*best].size()))
        best = i;
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

Outcome stream(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher m(stops);
  Outcome o;
  for (const std::string& p : pieces) {
    const StopMatcher::Result r = m.push(p);
    o.text += r.emit;
    if (r.stopped) o.which = r.which;
  }
  o.text += m.finish();
  return o;
}

TEST(StopMatcher, every_cut_equals_the_definition) {
  std::mt19937 rng(11);
  const auto word = [&](int max) {
    std::string s;
    for (int n = 1 + static_cast<int>(rng() % static_cast<unsigned>(max)); n > 0; --n)
      s += static_cast<char>('a' + rng() % 2);
    return s;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (int n = static_cast<int>(rng() % 4); n > 0; --n) stops.push_back(word(5));
    const std::string text = word(16);
    const Outcome want = reference(stops, text);
    for (size_t cut = 0; cut <= text.size(); ++cut)
      ASSERT_EQ(stream(stops, {text.substr(0, cut), text.substr(cut)}), want) << text << " cut at " << cut;
    std::vector<std::string> bytes;
    for (const char c : text) bytes.emplace_back(1, c);
    ASSERT_EQ(stream(stops, bytes), want) << text;
  }
}

TEST(StopMatcher, holds_back_only_a_proper_prefix_of_a_stop_string) {
  StopMatcher m({"</s>", "User:"});
  EXPECT_EQ(m.push("Hello <").emit, "Hello ");
  EXPECT_EQ(m.push("b> Us").emit, "<b> ");
  const StopMatcher::Result r = m.push("er: more");
  EXPECT_EQ(r.emit, "");
  EXPECT_TRUE(r.stopped);
  EXPECT_EQ(r.which, 1u);
  EXPECT_EQ(m.push("ignored").emit, "");
  EXPECT_EQ(m.finish(), "");
  EXPECT_EQ(m.push("new </").emit, "new ");
  EXPECT_EQ(m.finish(), "</");
}

TEST(StopMatcher, without_stop_strings_text_passes_through) {
  StopMatcher m({});
  EXPECT_EQ(m.push("anything").emit, "anything");
  EXPECT_EQ(m.finish(), "");
}

TEST(StopMatcher, refuses_bad_stop_strings) {
  const auto kind_of = [](std::vector<std::string> stops) {
    try {
      StopMatcher m(std::move(stops));
    } catch (const Error& e) {
      return e.kind() == ErrorKind::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(kind_of({""}));
  EXPECT_TRUE(kind_of({"\xFF"}));
  EXPECT_TRUE(kind_of({std::string(StopMatcher::kStopBytesMax + 1, 'x')}));
  EXPECT_TRUE(kind_of(std::vector<std::string>(StopMatcher::kStopsMax + 1, "x")));
}

}  // namespace
}  // namespace hearth::text
