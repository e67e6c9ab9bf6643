#include "server/worker/text_calls.h"

#include <vector>

#include "server/request_error.h"

namespace hearth::server {

namespace {

constexpr size_t kPiecesMax = size_t{1} << 20;  // of one answer: some 60 MB of JSON, half of what a frame may have

}  // namespace

json::Array token_list(const json::Value& body, std::span<const int32_t> ids, const text::Tokenizer& tokenizer) {
  const json::Value* pieces = body.get("with_pieces");
  const bool with_pieces = pieces && pieces->as_bool("with_pieces");
  if (with_pieces && ids.size() > kPiecesMax)
    throw RequestError("with_pieces", fmt::format("with_pieces: the text has {} tokens, of at most {} pieces are told",
                                                  ids.size(), kPiecesMax));
  json::Array list;
  for (const int32_t id : ids) {
    if (!with_pieces) {
      list.emplace_back(id);
      continue;
    }
    json::Object entry;
    entry["id"] = id;
    entry["piece"] = tokenizer.decode(std::span(&id, 1), false);
    list.emplace_back(std::move(entry));
  }
  return list;
}

json::Object text_call(FrameKind kind, const json::Value& body, const text::Tokenizer& tokenizer) {
  json::Object o;
  if (kind == FrameKind::detokenize) {
    const json::Value* tokens = body.get("tokens");
    if (!tokens) throw RequestError("tokens", "tokens is required");
    std::vector<int32_t> ids;
    for (const json::Value& id : tokens->as_array("tokens")) {
      const int64_t value = id.is_int() ? id.as_int("tokens") : -1;
      if (value < 0 || value >= tokenizer.vocab_size())
        throw RequestError("tokens", fmt::format("tokens: {} is no id of this vocabulary of {}", json::dump(id),
                                                 tokenizer.vocab_size()));
      ids.push_back(static_cast<int32_t>(value));
    }
    o["content"] = tokenizer.decode(ids, false);
    return o;
  }
  const json::Value* content = body.get("content");
  if (!content) throw RequestError("content", "content is required");
  const json::Value* add = body.get("add_special");
  const std::vector<int32_t> ids = tokenizer.encode(
      content->as_string("content"), {.parse_special = false, .add_special = add ? add->as_bool("add_special") : true});
  o["token_count"] = static_cast<int64_t>(ids.size());
  o["tokens"] = token_list(body, ids, tokenizer);
  return o;
}

json::Object prompt_call(FrameKind kind, const json::Value& body, const PromptModel& model) {
  const text::Tokenizer& tokenizer = model.text.tokenizer();
  if (kind == FrameKind::detokenize || body.get("content")) return text_call(kind, body, tokenizer);
  Prompt prompt = make_prompt(generation_of(body), model);
  json::Object o;
  o["prompt"] = std::move(prompt.rendered);
  o["token_count"] = static_cast<int64_t>(prompt.ids.size());
  if (kind == FrameKind::tokenize) o["tokens"] = token_list(body, prompt.ids, tokenizer);
  return o;
}

CallAnswers text_calls(WorkerModel model) {
  const auto shared = std::make_shared<WorkerModel>(std::move(model));
  const auto prompts = std::make_shared<PromptModel>(PromptModel{.text = *shared->text,
                                                                 .name = shared->name,
                                                                 .end_ids = {},
                                                                 .newline_ids = {},
                                                                 .defaults = shared->defaults,
                                                                 .limits = shared->limits});
  find_markup(*prompts, shared->opened->templates(), shared->tool_dialect);
  CallAnswers calls;
  calls.no_text = fmt::format("the weights of {} are not loaded", shared->name);
  calls.answer = [shared, prompts](FrameKind kind, const json::Value& body, const std::atomic<bool>&) {
    if (kind == FrameKind::stats) return json::Object();
    if (kind == FrameKind::embed) fail(ErrorKind::invalid_argument, "the weights of {} are not loaded", shared->name);
    return prompt_call(kind, body, *prompts);
  };
  return calls;
}

Event error_event(uint64_t id, const Error& error) {
  Event event{.kind = Event::Kind::error, .id = id, .answer = kWholeRequest};
  event.text = error.what();
  event.reason = name_of(error.kind());
  if (const auto* field = dynamic_cast<const RequestError*>(&error)) event.param = field->param();
  if (const auto* prompt = dynamic_cast<const PromptTooLong*>(&error)) {
    event.code = "context_length_exceeded";
    event.usage = prompt->usage();
    if (prompt->is_text()) event.limit = row_of(LimitId::template_output).name;
  } else {
    event.limit = limit_of(error);
  }
  return event;
}

}  // namespace hearth::server
