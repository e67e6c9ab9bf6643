#include "server/worker/answer_text.h"

namespace hearth::server {

AnswerText::AnswerText(const text::Tokenizer& tokenizer, bool prompt_has_text, std::vector<std::string> stops,
                       std::optional<int64_t> top_logprobs)
    : tokenizer_(tokenizer),
      stops_(stops),
      matcher_(std::move(stops)),
      top_logprobs_(top_logprobs),
      first_(!prompt_has_text) {}

// {token, id, bytes, logprob}: the piece as text, and its bytes, which may be a part of a character.
json::Value AnswerText::entry(int32_t id, float logprob) const {
  const std::string_view bytes = id < tokenizer_.vocab_size() ? tokenizer_.piece_bytes(id, false) : std::string_view();
  text::Detokenizer alone;
  json::Object o;
  o["token"] = alone.push(bytes) + alone.finish();
  o["id"] = id;
  json::Array list;
  for (const char c : bytes) list.emplace_back(int64_t{static_cast<unsigned char>(c)});
  o["bytes"] = std::move(list);
  o["logprob"] = double{logprob};
  return o;
}

bool AnswerText::push(const decode::TokenEvent& token, std::vector<Event>& out) {
  ++tokens_;
  if (top_logprobs_) {
    json::Value e = entry(token.id, token.logprob);
    json::Array top;
    for (const auto& [id, logprob] : token.top) top.push_back(entry(id, logprob));
    (*e.object())["top_logprobs"] = std::move(top);
    logprobs_.push_back(std::move(e));
  }
  // Padded heads have ids that no piece stands for.
  if (tokenizer_.is_special(token.id) || token.id >= tokenizer_.vocab_size()) return true;
  const std::string piece = detokenizer_.push(tokenizer_.piece_bytes(token.id, first_));
  first_ = false;
  text::StopMatcher::Result match = matcher_.push(piece);
  emit(std::move(match.emit), out);
  if (match.stopped) stop_ = stops_[*match.which];
  return !match.stopped;
}

void AnswerText::finish(std::vector<Event>& out) {
  if (!stop_) {
    text::StopMatcher::Result tail = matcher_.push(detokenizer_.finish());
    if (tail.stopped) stop_ = stops_[*tail.which];
    emit(std::move(tail.emit), out);
    if (!stop_) emit(matcher_.finish(), out);
  }
  if (logprobs_.size() == 0) return;
  Event event{.kind = Event::Kind::text};  // tokens without text of their own
  event.logprobs = std::move(logprobs_);
  logprobs_ = {};
  out.push_back(std::move(event));
}

void AnswerText::emit(std::string text, std::vector<Event>& out) {
  if (text.empty()) return;
  Event event{.kind = Event::Kind::text};
  event.text = std::move(text);
  if (top_logprobs_) {
    event.logprobs = std::move(logprobs_);
    logprobs_ = {};
  }
  out.push_back(std::move(event));
}

}  // namespace hearth::server
