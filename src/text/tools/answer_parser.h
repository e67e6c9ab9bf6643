// What a model writes, taken apart while it arrives: text, reasoning, calls of tools (spec server 14, 21-26).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/random.h"
#include "text/tools/dialect.h"
#include "text/tools/reasoning.h"
#include "text/tools/tool_spec.h"

namespace hearth::text {

namespace tools {
class CallReader;
}

struct TextPiece {
  std::string text;
  bool operator==(const TextPiece&) const = default;
};
struct ReasoningPiece {
  std::string text;
  bool operator==(const ReasoningPiece&) const = default;
};
struct ToolBegin {
  int index = 0;         // 0, 1, ... in the order of the answer
  std::string id, name;  // "call_" and 24 letters
  bool operator==(const ToolBegin&) const = default;
};
struct ToolArguments {
  int index = 0;
  std::string fragment;
  bool operator==(const ToolArguments&) const = default;
};
struct ToolEnd {
  int index = 0;
  bool operator==(const ToolEnd&) const = default;
};
using AnswerEvent = std::variant<TextPiece, ReasoningPiece, ToolBegin, ToolArguments, ToolEnd>;

struct AnswerOptions {
  std::optional<ReasoningMarkers> reasoning;
  bool reasoning_open = false;  // the prompt has opened it (opens_reasoning)
  ToolDialect dialect = ToolDialect::generic;
  std::vector<ToolSpec> tools;  // empty: no markup is looked for
  // A call is told from its name on, its arguments as they come: for answers that a grammar keeps in shape. Else it is
  // told when its markup is whole, and markup that is none is text; so is a call that begins in a way that no grammar
  // looks for.
  bool stream_calls = true;
  bool bare_calls = true;  // hermes and generic: an answer that is one call without its tags is a call (bare_call.h)
  bool parallel_calls = true;        // false: nothing behind the first call counts
  bool calls_only = false;           // a grammar holds the answer to calls: none of it, but for reasoning, is text
  std::vector<std::string> control;  // spellings of special tokens among the markup: no text is spelled so
};

// Takes text as Detokenizer gives it, special tokens that are markup spelled out. Joined, the events are the same for
// every way of cutting the text. Held back are what may become a marker (white space ahead of a marker belongs to it)
// and, of calls, what may belong to the syntax. Nothing is lost: what only looks like a marker, or names no known tool,
// is text; inside of reasoning everything but the closing marker is reasoning. White space next to reasoning and
// between calls is no text. The fragments of a call are one JSON object in the form of json::dump, its keys in the
// model's order, typed by the tool's schema. Time is linear in the text, memory too where a call is held. One answer an
// object, one thread at a time.
class AnswerParser {
 public:
  AnswerParser(AnswerOptions options, Random ids);
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;
  AnswerParser& operator=(AnswerParser&&) noexcept;

  // What this text makes certain. A call that began and turns out to be none (no grammar kept it in shape) stays
  // without its end, and text goes on behind it.
  std::vector<AnswerEvent> push(std::string_view text);

  struct End {
    std::vector<AnswerEvent> events;
    int calls = 0;          // that are whole
    bool call_cut = false;  // the text ended inside a call: it has no ToolEnd, or its markup came as text
  };
  // The end of the answer. By its own end, a call lacking nothing but its closing marker is whole; cut by the token
  // limit it is not (finish reason `length`), and where a grammar kept it in shape its markup is no text either. Half a
  // marker is text, and inside of reasoning reasoning: it may be nothing else; unless special tokens spell it, or the
  // answer could only be calls.
  End finish(bool cut_by_limit);

  bool stopped() const;       // parallel calls are off and one is whole: no further text counts
  bool in_reasoning() const;  // what comes next is reasoning, unless it is the closing marker
  size_t closing() const;     // bytes of the closing marker that the reasoning ends with; 0 outside of reasoning

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::text
