#include "server/worker/embed_session.h"

#include <span>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "base/log.h"
#include "server/request_error.h"
#include "server/worker/text_calls.h"

namespace hearth::server {

EmbedSession::EmbedSession(WorkerModel model, std::function<void(std::string_view)> send)
    : model_(std::move(model)), send_(std::move(send)), thread_([this] { run(); }) {}

EmbedSession::~EmbedSession() {
  work_.close();
  thread_.join();
}

void EmbedSession::send(const Frame& frame) {
  std::string bytes;
  append_frame(bytes, frame);
  const std::lock_guard lock(sending_);
  try {
    send_(bytes);
  } catch (const Error& error) {
    log::warn("worker", "{}", error.what());  // the receiving thread notices the same and ends the worker
  }
}

void EmbedSession::reply(uint64_t id, json::Object body) {
  body["id"] = id;
  send({FrameKind::reply, std::move(body)});
}

void EmbedSession::refuse(uint64_t id, const Error& error) { send(to_frame(error_event(id, error))); }

void EmbedSession::submit(json::Value body) {
  refuse(generation_of(body).id,
         Error(ErrorKind::invalid_argument,
               fmt::format("{} is an embedding model, it makes no answers: use /v1/embeddings", model_.name)));
}

void EmbedSession::cancel(uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = asked_.find(id); found != asked_.end()) found->second->cancelled = true;
}

void EmbedSession::call(FrameKind kind, json::Value body) {
  auto ask = std::make_shared<Ask>();
  const json::Value* id = body.get("id");
  ask->id = static_cast<uint64_t>(id ? id->as_int("id") : 0);
  ask->kind = kind;
  ask->body = std::move(body);
  {
    const std::lock_guard lock(mutex_);
    asked_[ask->id] = ask;
  }
  work_.push(std::move(ask));
}

void EmbedSession::adapter(Frame frame) {
  const json::Value* id = frame.body.get("id");
  if (!id) fail(ErrorKind::corrupt_file, "a frame of an adapter without an id");
  refuse(static_cast<uint64_t>(id->as_int("id")),
         Error(ErrorKind::invalid_argument,
               fmt::format("{} is an embedding model, adapters are for models that write text", model_.name)));
}

void EmbedSession::drain() {
  work_.close();
  thread_.join();
  thread_ = std::thread([] {});
}

void EmbedSession::run() {
  std::vector<std::shared_ptr<Ask>> asks;
  while (work_.take_all(asks))
    for (const std::shared_ptr<Ask>& ask : asks) {
      try {
        if (ask->cancelled) fail(ErrorKind::cancelled, "the client went away");
        reply(ask->id, answer(*ask));
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::cancelled) ++cancelled_;
        refuse(ask->id, error);
      }
      const std::lock_guard lock(mutex_);
      asked_.erase(ask->id);
    }
}

json::Object EmbedSession::answer(const Ask& ask) {
  if (ask.kind == FrameKind::embed) return embed(ask);
  if (ask.kind == FrameKind::stats) return counts();
  if (ask.kind == FrameKind::render)
    fail(ErrorKind::invalid_argument, "{} is an embedding model, it has no chat template", model_.name);
  return text_call(ask.kind, ask.body, model_.text->tokenizer());
}

json::Object EmbedSession::counts() const {
  json::Object o;
  o["submitted"] = embedded_ + cancelled_;
  o["cancelled"] = cancelled_;
  return o;
}

json::Object EmbedSession::embed(const Ask& ask) {
  std::vector<std::string> texts;
  for (const json::Value& text : ask.body.get("input")->as_array("input")) texts.push_back(text.as_string("input"));
  std::optional<std::string> instruction;
  if (const json::Value* said = ask.body.get("instruction")) instruction = said->as_string("instruction");
  const json::Value* wanted = ask.body.get("dimensions");
  decode::Embedder& embedder = *model_.embedder;
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
    ids = decode::embedding_ids(model_.text->tokenizer(), texts, instruction, embedder.embedding());
    decode::check_texts(embedder.model().spec(), embedder.embedding(), ids);
  });
  const decode::Vectors vectors = embedder.embed(ids, {.dimensions = dimensions, .cancel = &ask.cancelled});

  const json::Value* encoding = ask.body.get("encoding_format");
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
  ++embedded_;
  return o;
}

}  // namespace hearth::server
