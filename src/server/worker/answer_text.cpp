#include "server/worker/answer_text.h"

#include <algorithm>

#include "base/random.h"

namespace hearth::server {

AnswerText::AnswerText(const PromptModel& model, const Prompt& prompt, const Generation& g, Calls calls)
    : model_(model),
      tokenizer_(model.text.tokenizer()),
      stops_(g.stops),
      matcher_(g.stops),
      top_logprobs_(g.top_logprobs),
      looks_for_calls_(!prompt.tools.empty()),
      first_(!prompt.has_text),
      in_reasoning_(prompt.reasoning_open) {
  if (g.kind == Generation::Kind::raw || (!model.reasoning && prompt.tools.empty())) return;
  text::AnswerOptions options;
  options.reasoning = model.reasoning;
  options.reasoning_open = prompt.reasoning_open;
  options.dialect = model.dialect;
  options.tools = prompt.tools;
  options.stream_calls = calls == Calls::streamed;
  options.parallel_calls = g.parallel_tool_calls;
  parser_.emplace(std::move(options), Random(entropy64()));
}

// What a token adds to the text; special tokens add nothing unless they are markup that is looked for.
std::string_view AnswerText::bytes_of(int32_t id) const {
  if (id >= tokenizer_.vocab_size()) return {};  // padded heads have ids that no piece stands for
  if (!tokenizer_.is_special(id)) return tokenizer_.piece_bytes(id, first_);
  const auto is_in = [&](const std::vector<int32_t>& ids) { return std::ranges::binary_search(ids, id); };
  const bool markup = parser_ && ((looks_for_calls_ && is_in(model_.call_markup)) || is_in(model_.reasoning_markup));
  return markup ? tokenizer_.piece(id) : std::string_view();
}

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
  const std::string_view bytes = bytes_of(token.id);
  if (bytes.empty()) return true;
  const std::string piece = detokenizer_.push(bytes);
  first_ = false;
  text::StopMatcher::Result match = matcher_.push(piece);
  emit(std::move(match.emit), out);
  if (in_reasoning_) ++reasoning_tokens_;
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
    in_reasoning_ = std::holds_alternative<text::ReasoningPiece>(event);
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
