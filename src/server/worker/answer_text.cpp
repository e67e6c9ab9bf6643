#include "server/worker/answer_text.h"

#include "base/random.h"

namespace hearth::server {

json::Object token_entry(const text::Tokenizer& tokenizer, int32_t id, double logprob, Spelling spelling) {
  const bool known = id < tokenizer.vocab_size();
  const std::string_view bytes = known ? tokenizer.piece_bytes(id, false) : std::string_view();
  json::Object o;
  if (spelling == Spelling::raw) {
    o["token"] = known ? tokenizer.piece(id) : std::string_view();
  } else {
    text::Detokenizer alone;
    o["token"] = alone.push(bytes) + alone.finish();
  }
  o["id"] = id;
  json::Array list;
  for (const char c : bytes) list.emplace_back(int64_t{static_cast<unsigned char>(c)});
  o["bytes"] = std::move(list);
  o["logprob"] = logprob;
  return o;
}

AnswerText::AnswerText(const PromptModel& model, const Prompt& prompt, const Generation& g, Calls calls)
    : model_(model),
      stops_(g.stops),
      matcher_(g.stops),
      top_logprobs_(g.top_logprobs),
      spelling_(g.raw_pieces ? Spelling::raw : Spelling::text),
      first_(!prompt.has_text) {
  std::optional<text::AnswerOptions> options = answer_options(g, model, prompt, calls);
  if (!options) return;
  markup_ = {.calls = !prompt.tools.empty(), .reasoning = true};
  if (options->reasoning) meter_.emplace(*options);
  parser_.emplace(std::move(*options), Random(entropy64()));
}

json::Value AnswerText::entry(int32_t id, float logprob) const {
  return token_entry(model_.text.tokenizer(), id, double{logprob}, spelling_);
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
  const std::string_view bytes = answer_bytes(model_, token.id, first_, markup_);
  if (meter_) meter_->push(bytes);
  if (bytes.empty()) return true;
  const std::string piece = detokenizer_.push(bytes);
  first_ = false;
  text::StopMatcher::Result match = matcher_.push(piece);
  emit(std::move(match.emit), out);
  if (match.stopped) stop_ = stops_[*match.which];
  return !match.stopped && !(parser_ && parser_->stopped());
}

void AnswerText::finish(Cut cut, std::vector<Event>& out) {
  if (!stop_) {
    text::StopMatcher::Result tail = matcher_.push(detokenizer_.finish());
    if (tail.stopped) stop_ = stops_[*tail.which];
    emit(std::move(tail.emit), out);
    if (!stop_) emit(matcher_.finish(), out);
  }
  if (parser_) {
    text::AnswerParser::End end = parser_->finish(cut == Cut::by_limit);
    calls_ = end.calls;
    emit(std::move(end.events), out);
  }
  if (logprobs_.size() > 0) send(Event::Kind::text, "", out);  // of tokens without text of their own
}

void AnswerText::emit(std::string text, std::vector<Event>& out) {
  if (text.empty()) return;
  if (parser_) emit(parser_->push(text), out);
  else send(Event::Kind::text, std::move(text), out);
}

void AnswerText::send(Event::Kind kind, std::string text, std::vector<Event>& out) {
  Event event{.kind = kind};
  event.text = std::move(text);
  if (kind == Event::Kind::text && top_logprobs_) {
    event.logprobs = std::move(logprobs_);
    logprobs_ = {};
  }
  out.push_back(std::move(event));
}

void AnswerText::emit(std::vector<text::AnswerEvent> parsed, std::vector<Event>& out) {
  for (text::AnswerEvent& event : parsed) {
    if (auto* piece = std::get_if<text::TextPiece>(&event)) {
      send(Event::Kind::text, std::move(piece->text), out);
    } else if (auto* thought = std::get_if<text::ReasoningPiece>(&event)) {
      send(Event::Kind::reasoning, std::move(thought->text), out);
    } else if (auto* begin = std::get_if<text::ToolBegin>(&event)) {
      send(Event::Kind::tool_begin, "", out);
      out.back().index = begin->index;
      out.back().call = std::move(begin->id);
      out.back().name = std::move(begin->name);
    } else if (auto* arguments = std::get_if<text::ToolArguments>(&event)) {
      send(Event::Kind::tool_args, std::move(arguments->fragment), out);
      out.back().index = arguments->index;
    } else {
      send(Event::Kind::tool_end, "", out);
      out.back().index = std::get<text::ToolEnd>(event).index;
    }
  }
}

}  // namespace hearth::server
