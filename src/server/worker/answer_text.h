// The words of one answer: ids to text, stop strings, and what else the text turns out to be (reasoning, tool calls).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/scheduler.h"
#include "server/generation.h"
#include "server/worker/prompt.h"
#include "text/detokenizer.h"
#include "text/stop.h"
#include "text/tools/reasoning_meter.h"
#include "text/tokenizer.h"

namespace hearth::server {

// {token, id, bytes, logprob}: the piece as text, and its bytes, which may be a part of a character. With `raw` the
// piece is spelled as the vocabulary has it.
enum class Spelling : uint8_t { text, raw };
json::Object token_entry(const text::Tokenizer& tokenizer, int32_t id, double logprob, Spelling spelling);

// Text thread only. Held back while it may become something else: an unfinished character, a prefix of a stop string or
// of a marker (spec server 14).
class AnswerText {
 public:
  // The model must outlive it.
  AnswerText(const PromptModel& model, const Prompt& prompt, const Generation& generation, Calls calls);

  // One token, its events appended. False: a stop string was found, nothing more is wanted.
  bool push(const decode::TokenEvent& token, std::vector<Event>& out);
  // The end: what was held is sent. cut_by_limit: the answer had more to say.
  enum class Cut : uint8_t { no, by_limit };
  void finish(Cut cut, std::vector<Event>& out);

  int64_t tokens() const { return tokens_; }  // pushed so far
  int64_t reasoning_tokens() const { return meter_ ? meter_->tokens() : 0; }
  int64_t calls() const { return calls_; }  // whole ones; final behind finish()
  const std::optional<std::string>& stop() const { return stop_; }

 private:
  void emit(std::string text, std::vector<Event>& out);
  void emit(std::vector<text::AnswerEvent> parsed, std::vector<Event>& out);
  void send(Event::Kind kind, std::string text, std::vector<Event>& out);
  json::Value entry(int32_t id, float logprob) const;

  const PromptModel& model_;
  std::vector<std::string> stops_;
  text::Detokenizer detokenizer_;
  text::StopMatcher matcher_;
  std::optional<int64_t> top_logprobs_;
  Spelling spelling_;
  json::Array logprobs_;                      // of tokens whose text is not sent yet
  std::optional<text::AnswerParser> parser_;  // none: all is text
  std::optional<text::ReasoningMeter> meter_;
  Markup markup_;
  bool first_;
  int64_t tokens_ = 0, calls_ = 0;
  std::optional<std::string> stop_;
};

}  // namespace hearth::server
