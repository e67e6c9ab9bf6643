// A parsed request to what the engine takes: ids, sampler, ends. Words end here (DESIGN 2).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "decode/scheduler.h"
#include "model/model_text.h"
#include "server/generation.h"
#include "server/limits.h"
#include "text/chat_template.h"
#include "text/tools/answer_parser.h"

namespace hearth::server {

// What the words of a loaded model are turned to ids with.
struct PromptModel {
  const model::ModelText& text;
  std::string name;
  int64_t context = 0;  // positions that one conversation may have
  int64_t V = 0;
  std::vector<int32_t> end_ids, newline_ids;
  json::Object defaults;  // sampling fields: the server's flags over the model's generation_config
  text::ToolDialect dialect = text::ToolDialect::generic;
  std::optional<text::ReasoningMarkers> reasoning;
  // Special tokens that are markup of calls, of reasoning: their spelling is part of the text where that is looked for.
  std::vector<int32_t> call_markup, reasoning_markup;  // ascending
  // By how many bytes of reasoning's closing marker stand there: ids that complete it. Empty: it has none, or no ids
  // spell it.
  std::vector<std::vector<int32_t>> closers;
  Limits limits{};  // of templates and grammars
};

// Which markup is looked for in an answer.
struct Markup {
  bool calls = false, reasoning = false;
};

// What a token adds to an answer's text; special tokens add nothing unless they are markup that is looked for. `first`:
// no token with text stands before it.
std::string_view answer_bytes(const PromptModel& model, int32_t id, bool first, Markup markup);

// The family's markup, from its template and vocabulary; that of calls by the dialect where one is given.
void find_markup(PromptModel& model, const std::string& template_source,
                 std::optional<text::ToolDialect> dialect = std::nullopt);
void find_markup(PromptModel& model, const model::Templates& templates,
                 std::optional<text::ToolDialect> dialect = std::nullopt);

// The functions that a request offers.
std::vector<text::ToolSpec> tool_specs(const json::Value& tools);

// Whether the answer is to begin with reasoning, as the request or else --thinking says; nothing: the template decides.
std::optional<bool> thinking_of(const Generation& generation, const PromptModel& model);

struct Prompt {
  std::vector<int32_t> ids;
  std::string rendered;               // what the template made; a raw prompt as it is
  bool has_text = false;              // a piece of the prompt stands for text: a first piece's leading space counts
  bool reasoning_open = false;        // the template has opened the reasoning
  std::vector<text::ToolSpec> tools;  // that the answer may call
};

// No context of the model takes the prompt: the request's fault, in the words that clients look for (spec server 4).
class PromptTooLong : public Error {
 public:
  PromptTooLong(int64_t tokens, int64_t context);
  // Its text alone is too much to be counted in tokens; context 0: not known.
  PromptTooLong(const text::TextTooLong& text, int64_t context);
  const Usage& usage() const { return usage_; }  // prompt and context (as max_tokens); 0: not known
  bool is_text() const { return is_text_; }      // the limit that was passed is that of text

 private:
  Usage usage_;
  bool is_text_ = false;
};

// Renders (chat) or takes (raw) and encodes. Throws Error{invalid_argument}: no template, or what the template says;
// an empty raw prompt for a model without a BOS. PromptTooLong for more text than a template takes.
Prompt make_prompt(const Generation& generation, const PromptModel& model);

// The request of answer `answer`, with its own seed; adapter and space are the engine thread's to fill in. Throws
// Error{invalid_argument} naming the field: also max_tokens where it and the prompt do not fit the context (strict
// admission).
decode::Request make_request(const Generation& generation, const PromptModel& model, const Prompt& prompt,
                             int64_t answer);

// How the answer is taken apart; nullopt: all of it is text. Calls are streamed where a grammar keeps them in shape,
// else each is told when it is whole.
enum class Calls : uint8_t { whole, streamed };
std::optional<text::AnswerOptions> answer_options(const Generation& generation, const PromptModel& model,
                                                  const Prompt& prompt, Calls calls);

// The messages as templates want them: one system message in front, developer for system, null content as "".
json::Value arranged(const json::Value& messages);

}  // namespace hearth::server
