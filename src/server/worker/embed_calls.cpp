#include <span>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "server/request_error.h"
#include "server/worker/text_calls.h"
#include "server/worker/worker.h"

namespace hearth::server {
namespace {

json::Object embed(decode::Embedder& embedder, const model::ModelText& words, const json::Value& body,
                   const std::atomic<bool>& cancelled) {
  std::vector<std::string> texts;
  for (const json::Value& text : body.get("input")->as_array("input")) texts.push_back(text.as_string("input"));
  std::optional<std::string> instruction;
  if (const json::Value* said = body.get("instruction")) instruction = said->as_string("instruction");
  const json::Value* wanted = body.get("dimensions");
  decode::TextIds ids;
  int64_t dimensions = 0;
  const auto field = [](const char* name, const auto& check) {
    try {
      return check();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_argument) throw;
      throw RequestError(name, fmt::format("{}: {}", name, error.what()));
    }
  };
  field("dimensions", [&] {
    dimensions = decode::checked_dimensions(embedder.model().spec(), wanted ? wanted->as_int("dimensions") : 0);
  });
  field("input", [&] {
    ids = decode::embedding_ids(words.tokenizer(), texts, instruction, embedder.model().spec(), embedder.embedding(),
                                &cancelled);
  });
  const decode::Vectors vectors = embedder.embed(ids, {.dimensions = dimensions, .cancel = &cancelled});

  const json::Value* encoding = body.get("encoding_format");
  const bool as_base64 = encoding && encoding->as_string("encoding_format") == "base64";
  json::Array list;
  for (int64_t i = 0; i < vectors.count; ++i) {
    if (as_base64) {
      list.emplace_back(base64(std::as_bytes(vectors[i])));
      continue;
    }
    json::Array numbers;
    for (const float value : vectors[i]) numbers.emplace_back(double{value});
    list.emplace_back(std::move(numbers));
  }
  json::Object o;
  o["vectors"] = std::move(list);
  o["tokens"] = vectors.tokens;
  return o;
}

}  // namespace

CallAnswers embed_calls(WorkerModel model) {
  const auto shared = std::make_shared<WorkerModel>(std::move(model));
  CallAnswers calls;
  calls.no_text = fmt::format("{} is an embedding model, it makes no answers: use /v1/embeddings", shared->name);
  struct Counts {
    int64_t submitted = 0, cancelled = 0;
  };
  calls.answer = [shared, counts = Counts()](FrameKind kind, const json::Value& body,
                                             const std::atomic<bool>& cancelled) mutable {
    if (kind == FrameKind::stats) {
      json::Object o;
      o["submitted"] = counts.submitted;
      o["cancelled"] = counts.cancelled;
      return o;
    }
    if (kind == FrameKind::render)
      fail(ErrorKind::invalid_argument, "{} is an embedding model, it has no chat template", shared->name);
    if (kind != FrameKind::embed) return text_call(kind, body, shared->text->tokenizer());
    if (!shared->embedder) fail(ErrorKind::invalid_argument, "the weights of {} are not loaded", shared->name);
    ++counts.submitted;
    try {
      if (cancelled) fail(ErrorKind::cancelled, "the client went away");
      return embed(*shared->embedder, *shared->text, body, cancelled);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) ++counts.cancelled;
      throw;
    }
  };
  return calls;
}

}  // namespace hearth::server
