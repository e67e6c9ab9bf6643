// Answers for the tests of dialects: events as a worker sends them, cut at random, and streams read back.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "server/dialects/answer.h"

namespace hearth::server {

inline Event event_of(Event::Kind kind, std::string text) {
  Event e{.kind = kind};
  e.text = std::move(text);
  return e;
}

inline Event finish_of(std::string reason, std::string stop = "") {
  Event e{.kind = Event::Kind::finish};
  e.reason = std::move(reason);
  e.stop = std::move(stop);
  e.usage = {.prompt = 40, .cached = 32, .completion = 9, .reasoning = 3};
  return e;
}

// A call with its arguments in pieces of at most `piece` bytes; not whole: the token limit cut it.
inline void add_call(std::vector<Event>& events, int64_t index, const std::string& name, const std::string& arguments,
                     size_t piece, bool whole = true) {
  Event begin{.kind = Event::Kind::tool_begin};
  begin.index = index;
  begin.call = "call_abcdefghijklmnopqrstuvw" + std::to_string(index);
  begin.name = name;
  events.push_back(begin);
  for (size_t at = 0; at < arguments.size();) {
    size_t end = std::min(at + piece, arguments.size());
    while (end < arguments.size() && (static_cast<unsigned char>(arguments[end]) & 0xC0) == 0x80)
      ++end;  // whole characters
    Event part{.kind = Event::Kind::tool_args};
    part.index = index;
    part.text = arguments.substr(at, end - at);
    events.push_back(std::move(part));
    at = end;
  }
  Event end{.kind = Event::Kind::tool_end};
  end.index = index;
  if (whole) events.push_back(end);
}

// Runs of reasoning, text and calls in any order, ended by finish.
inline std::vector<Event> random_events(Random& random) {
  std::vector<Event> events;
  int64_t calls = 0;
  for (uint64_t runs = random.below(6); runs > 0; --runs) {
    const uint64_t kind = random.below(3);
    if (kind == 2) {
      add_call(events, calls++, "find", R"({"query":"a \"b\" ü","deep":{"n":[1,2.5,null]}})", 1 + random.below(9));
      continue;
    }
    for (uint64_t words = 1 + random.below(4); words > 0; --words)
      events.push_back(
          event_of(kind == 0 ? Event::Kind::reasoning : Event::Kind::text, random.below(5) == 0 ? "" : "wörd "));
  }
  events.push_back(finish_of(calls > 0 ? "tool_calls" : random.below(2) == 0 ? "stop" : "length"));
  return events;
}

struct Streamed {
  std::string name;
  json::Value data;
};

inline std::vector<Streamed> read_stream(std::string_view bytes) {
  std::vector<Streamed> list;
  while (!bytes.empty()) {
    const size_t end = bytes.find("\n\n");
    const std::string_view block = bytes.substr(0, end);
    const size_t line = block.find('\n');
    list.push_back({std::string(block.substr(7, line - 7)), json::parse(block.substr(line + 7), "an event")});
    bytes.remove_prefix(end + 2);
  }
  return list;
}

inline std::string stream_of(AnswerWriter& writer, const AnswerHead& head, const std::vector<Event>& events) {
  std::string bytes = writer.begin(head, events.back().usage);
  for (const Event& event : events) bytes += writer.event(event);
  return bytes + writer.end();
}

inline Collected collected(const std::vector<Event>& events) {
  Collected all;
  for (const Event& event : events) all.add(event);
  return all;
}

// A document that is written out, as json::dump() would write it.
inline std::string text_of(std::string_view document) { return json::dump(json::parse(document, "a document")); }

inline const json::Value& at(const json::Value& value, std::string_view key) {
  static const json::Value kNull;
  const json::Value* member = value.get(key);
  return member ? *member : kNull;
}

}  // namespace hearth::server
