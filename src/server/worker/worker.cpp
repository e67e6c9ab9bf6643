#include "server/worker/worker.h"

#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "decode/too_large.h"
#include "server/wire.h"
#include "server/worker/adapter_files.h"
#include "server/worker/call_session.h"
#include "server/worker/session.h"
#include "server/worker/text_calls.h"

namespace hearth::server {
namespace {

void report(Wire& wire, const Error& error) {
  Event event{.kind = Event::Kind::error};
  event.text = error.what();
  event.reason = name_of(error.kind());
  if (const auto* large = dynamic_cast<const decode::TooLarge*>(&error)) {
    event.needed_bytes = large->needed_bytes();
    event.usable_bytes = large->usable_bytes();
  }
  wire.send(to_frame(event));
}

uint64_t id_of(const Frame& frame) {
  const json::Value* id = frame.body.get("id");
  if (!id) fail(ErrorKind::corrupt_file, "a frame of kind {} without an id", static_cast<int>(frame.kind));
  return static_cast<uint64_t>(id->as_int("id"));
}

// Frames to the model's session until the front closes or drains.
template <class Requests>
void serve(Wire& wire, json::Object facts, Requests& session) {
  wire.send({FrameKind::loaded, std::move(facts)});
  while (std::optional<Frame> frame = wire.receive()) {
    if (is_request(frame->kind)) wire.send(taken_frame(id_of(*frame)));
    switch (frame->kind) {
      case FrameKind::submit: session.submit(std::move(frame->body)); break;
      case FrameKind::cancel: session.cancel(id_of(*frame)); break;
      case FrameKind::hold: session.hold(id_of(*frame), true); break;
      case FrameKind::release: session.hold(id_of(*frame), false); break;
      case FrameKind::embed:
      case FrameKind::tokenize:
      case FrameKind::detokenize:
      case FrameKind::render:
      case FrameKind::stats: session.call(frame->kind, std::move(frame->body)); break;
      case FrameKind::adapter_mount:
      case FrameKind::adapter_unmount: session.adapter(std::move(*frame)); break;
      case FrameKind::drain: session.drain(); return;
      default: fail(ErrorKind::corrupt_file, "a frame of kind {} to a model's worker", static_cast<int>(frame->kind));
    }
  }
}

// Behind a model's headers: what configs of adapters say, one after the other.
void serve_configs(Wire& wire, json::Object facts) {
  wire.send({FrameKind::loaded, std::move(facts)});
  while (std::optional<Frame> frame = wire.receive()) {
    if (frame->kind != FrameKind::adapter_describe)
      fail(ErrorKind::corrupt_file, "a frame of kind {} to a reader of headers", static_cast<int>(frame->kind));
    const uint64_t id = id_of(*frame);
    wire.send(taken_frame(id));
    try {
      json::Object body;
      body["id"] = id;
      body["adapter"] = describe_adapter(*frame);
      wire.send({FrameKind::reply, std::move(body)});
    } catch (const Error& error) {
      Event event{.kind = Event::Kind::error, .id = id, .answer = kWholeRequest};
      event.text = error.what();
      event.reason = name_of(error.kind());
      wire.send(to_frame(event));
    }
  }
}

}  // namespace

int run_worker(int fd, const LoadModel& load) {
  Wire wire(fd, Wire::Files::taken);
  try {
    const std::optional<Frame> first = wire.receive();
    if (!first) return 0;
    if (first->kind != FrameKind::load) fail(ErrorKind::corrupt_file, "the first frame is no load");
    WorkerModel model = load([&](int64_t done, int64_t total) {
      json::Object o;
      o["done"] = done;
      o["total"] = total;
      wire.send({FrameKind::progress, std::move(o)});
    });
    json::Object facts = model.facts;
    const auto send = [&](std::string_view frames) { wire.send_bytes(frames); };
    if (!model.text) {
      serve_configs(wire, std::move(facts));
    } else if (model.engine) {
      Session session(std::move(model), send);
      serve(wire, std::move(facts), session);
    } else {
      const bool embeds = model.embedder || model.embedding;
      CallSession session(embeds ? embed_calls(std::move(model)) : text_calls(std::move(model)), send);
      serve(wire, std::move(facts), session);
    }
    return 0;
  } catch (const Error& error) {
    log::error("worker", "{}", error.what());
    try {
      report(wire, error);
    } catch (const Error&) {
      // The front is gone; its log has the end of the wire.
    }
    return exit_code(error.kind());
  }
}

}  // namespace hearth::server
