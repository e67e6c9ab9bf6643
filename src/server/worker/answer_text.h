// The words of one answer: ids to text, stop strings, and what else the text turns out to be (reasoning, tool calls).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/scheduler.h"
#include "server/generation.h"
#include "text/detokenizer.h"
#include "text/stop.h"
#include "text/tokenizer.h"

namespace hearth::server {

// Text thread only. Held back while it may become something else: an unfinished character, a prefix of a stop string or
// of a marker (spec server 14).
class AnswerText {
 public:
  // The tokenizer must outlive it. prompt_has_text: as Prompt's.
  AnswerText(const text::Tokenizer& tokenizer, bool prompt_has_text, std::vector<std::string> stops,
             std::optional<int64_t> top_logprobs);

  // One token, its events appended. False: a stop string was found, nothing more is wanted.
  bool push(const decode::TokenEvent& token, std::vector<Event>& out);
  // The end: what was held is sent.
  void finish(std::vector<Event>& out);

  int64_t tokens() const { return tokens_; }  // pushed so far
  const std::optional<std::string>& stop() const { return stop_; }

 private:
  void emit(std::string text, std::vector<Event>& out);
  json::Value entry(int32_t id, float logprob) const;

  const text::Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  text::Detokenizer detokenizer_;
  text::StopMatcher matcher_;
  std::optional<int64_t> top_logprobs_;
  json::Array logprobs_;  // of tokens whose text is not sent yet
  bool first_;
  int64_t tokens_ = 0;
  std::optional<std::string> stop_;
};

}  // namespace hearth::server
