#include "server/worker/call_session.h"

#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "server/generation.h"
#include "server/worker/guarded.h"
#include "server/worker/text_calls.h"

namespace hearth::server {

CallSession::CallSession(CallAnswers calls, std::function<void(std::string_view)> send)
    : calls_(std::move(calls)), send_(std::move(send)), thread_([this] { run(); }) {}

CallSession::~CallSession() {
  work_.close();
  thread_.join();
}

void CallSession::send(const Frame& frame) {
  std::string bytes;
  append_frame(bytes, frame);
  const std::lock_guard lock(sending_);
  try {
    send_(bytes);
  } catch (const Error& error) {
    log::warn("worker", "{}", error.what());  // the receiving thread notices the same and ends the worker
  }
}

void CallSession::reply(uint64_t id, json::Object body) {
  body["id"] = id;
  send({FrameKind::reply, std::move(body)});
}

void CallSession::refuse(uint64_t id, const Error& error) { send(to_frame(error_event(id, error))); }

void CallSession::submit(json::Value body) {
  refuse(generation_of(body).id, Error(ErrorKind::invalid_argument, calls_.no_text));
}

void CallSession::cancel(uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = asked_.find(id); found != asked_.end()) found->second->cancelled = true;
}

void CallSession::call(FrameKind kind, json::Value body) {
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

void CallSession::adapter(Frame frame) {
  const json::Value* id = frame.body.get("id");
  if (!id) fail(ErrorKind::corrupt_file, "a frame of an adapter without an id");
  refuse(static_cast<uint64_t>(id->as_int("id")), Error(ErrorKind::invalid_argument, calls_.no_text));
}

void CallSession::drain() {
  work_.close();
  thread_.join();
  thread_ = std::thread([] {});
}

void CallSession::run() {
  std::vector<std::shared_ptr<Ask>> asks;
  while (work_.take_all(asks))
    for (const std::shared_ptr<Ask>& ask : asks) {
      guarded([&] { reply(ask->id, calls_.answer(ask->kind, ask->body, ask->cancelled)); },
              [&](const Error& error) { refuse(ask->id, error); });
      const std::lock_guard lock(mutex_);
      asked_.erase(ask->id);
    }
}

}  // namespace hearth::server
