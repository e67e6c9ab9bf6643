// The events of an answer, joined, and what must hold for them whatever a model writes.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/tools/answer_parser.h"

namespace hearth::test {

struct JoinedCall {
  std::string name, arguments;
  bool ended = false;
  bool operator==(const JoinedCall&) const = default;
};

struct JoinedAnswer {
  std::string text, reasoning;
  std::vector<JoinedCall> calls;
  std::vector<text::AnswerEvent> events;  // neighbours of one kind joined
  int whole = 0;
  bool cut = false;
  std::string problem;  // what was out of order; empty: nothing
};

inline void join_event(JoinedAnswer& answer, const text::AnswerEvent& event) {
  const auto wrong = [&](std::string what) {
    if (answer.problem.empty()) answer.problem = std::move(what);
  };
  const auto open = [&](int index) {
    const bool ok =
        !answer.calls.empty() && index + 1 == static_cast<int>(answer.calls.size()) && !answer.calls.back().ended;
    if (!ok) wrong("an event of a call that is not open");
    return ok;
  };
  text::AnswerEvent* last = answer.events.empty() ? nullptr : &answer.events.back();
  bool joined = false;
  if (const auto* piece = std::get_if<text::TextPiece>(&event)) {
    if (piece->text.empty()) wrong("an empty piece of text");
    answer.text += piece->text;
    if (auto* before = last ? std::get_if<text::TextPiece>(last) : nullptr) before->text += piece->text, joined = true;
  } else if (const auto* thought = std::get_if<text::ReasoningPiece>(&event)) {
    if (thought->text.empty()) wrong("an empty piece of reasoning");
    answer.reasoning += thought->text;
    if (auto* before = last ? std::get_if<text::ReasoningPiece>(last) : nullptr)
      before->text += thought->text, joined = true;
  } else if (const auto* begin = std::get_if<text::ToolBegin>(&event)) {
    if (begin->index != static_cast<int>(answer.calls.size())) wrong("a call out of order");
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    bool id = begin->id.size() == 29 && begin->id.starts_with("call_");
    for (size_t i = 5; id && i < begin->id.size(); ++i) id = letter(begin->id[i]);
    if (!id) wrong("an id of another form: " + begin->id);
    answer.calls.push_back({.name = begin->name, .arguments = {}});
  } else if (const auto* arguments = std::get_if<text::ToolArguments>(&event)) {
    if (arguments->fragment.empty()) wrong("an empty fragment");
    if (open(arguments->index)) answer.calls.back().arguments += arguments->fragment;
    auto* before = last ? std::get_if<text::ToolArguments>(last) : nullptr;
    if (before && before->index == arguments->index) before->fragment += arguments->fragment, joined = true;
  } else if (open(std::get<text::ToolEnd>(event).index)) {
    answer.calls.back().ended = true;
  }
  if (!joined) answer.events.push_back(event);
}

// The answer of a parser that is given these pieces.
inline JoinedAnswer read_answer(const text::AnswerOptions& options, const std::vector<std::string_view>& pieces,
                                bool cut_by_limit = false) {
  JoinedAnswer answer;
  text::AnswerParser parser(options, Random(7));
  for (const std::string_view piece : pieces)
    for (const text::AnswerEvent& event : parser.push(piece)) join_event(answer, event);
  const text::AnswerParser::End end = parser.finish(cut_by_limit);
  for (const text::AnswerEvent& event : end.events) join_event(answer, event);
  answer.whole = end.calls;
  answer.cut = end.call_cut;

  int ended = 0;
  for (const JoinedCall& call : answer.calls) {
    ended += call.ended;
    if (text::tools::find_tool(options.tools, call.name) == nullptr)
      answer.problem = "a call of an unknown tool " + call.name;
    if (!options.stream_calls && !call.ended) answer.problem = "a held call without its end";
    if (!call.ended) continue;
    try {
      if (!json::parse(call.arguments, "arguments").is_object()) answer.problem = "arguments that are no object";
    } catch (const Error& e) {
      answer.problem = std::string(e.what()) + " in " + call.arguments;
    }
  }
  if (ended != answer.whole) answer.problem = "another number of whole calls than reported";
  if (!options.parallel_calls && ended > 1) answer.problem = "more calls than one";
  return answer;
}

// Checks on one text: every way of cutting it gives the same, nothing is lost, held and streamed calls agree. Returns
// what is wrong; empty: nothing. `seed` picks the cuts.
inline std::string check_answer(text::AnswerOptions options, std::string_view text, bool cut_by_limit, uint64_t seed) {
  const JoinedAnswer whole = read_answer(options, {text}, cut_by_limit);
  if (!whole.problem.empty()) return whole.problem;
  std::vector<std::string_view> bytes, some;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
  Random random(seed);
  for (size_t i = 0, n = 0; i < text.size(); i += n) some.push_back(text.substr(i, n = 1 + random.below(9)));
  for (const auto* pieces : {&bytes, &some}) {
    const JoinedAnswer cut = read_answer(options, *pieces, cut_by_limit);
    if (!cut.problem.empty()) return cut.problem;
    if (cut.events != whole.events || cut.whole != whole.whole || cut.cut != whole.cut)
      return "another answer when the text comes in pieces";
  }
  options.stream_calls = !options.stream_calls;
  const JoinedAnswer other = read_answer(options, {text}, cut_by_limit);
  if (!other.problem.empty()) return other.problem;
  const JoinedAnswer& streamed = options.stream_calls ? other : whole;
  const JoinedAnswer& held = options.stream_calls ? whole : other;
  if (!options.reasoning && held.calls.empty() && held.text != text) return "text was lost";
  bool all = true;  // a call that began and broke leaves other text behind it
  for (const JoinedCall& call : streamed.calls) all &= call.ended;
  if (all && streamed.calls != held.calls) return "other calls when they are streamed";
  return {};
}

}  // namespace hearth::test
