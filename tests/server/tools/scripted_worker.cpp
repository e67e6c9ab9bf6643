// A worker without a model: speaks the wire as its "model file" says, which holds lines of
//   bytes N         what it takes of the budget (100); out_of_memory beyond it
//   vague           without saying how much it needs
//   load_ms N       how long the load takes
//   fail KIND TEXT  the load is refused
//   die             it ends while it loads
//   die_at N        it ends at its N-th request, unanswered
//   mute            requests get no answer, and neither does a question for a sign of life
//   answer_ms N     how long an answer takes (0)
//   drain_ms N      how long it takes to end when it is told to (0); then its step "drained NAME" is noted
//   refuse KIND TEXT  requests are refused
//   talk            requests get a first word, and their end when a slow reader has caught up: "hold NAME" and "release
//                   NAME" are noted
//   hang            it never says a word
// An adapter is mounted, or described by a reader of headers, if its config begins with "good"; with "die" it ends;
// else it is refused with that text. Behind the budget stands its role: nothing, "text" or "headers" (then perhaps the
// positions to plan for). Each of its steps is a line in the file "events" beside the model: "load NAME", "loaded
// NAME", "answer NAME", "mount X NAME", "unmount X NAME".
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "server/generation.h"
#include "server/wire.h"

namespace {

using namespace hearth;
using namespace hearth::server;

struct Script {
  int64_t bytes = 100, load_ms = 0, die_at = 0, answer_ms = 0, drain_ms = 0;
  std::string fail_kind, fail_text, refuse_kind, refuse_text;
  bool dies = false, mute = false, hangs = false, vague = false, talks = false;
};

Script read_script(const std::filesystem::path& path) {
  Script script;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "bytes") words >> script.bytes;
    if (word == "load_ms") words >> script.load_ms;
    if (word == "die_at") words >> script.die_at;
    if (word == "answer_ms") words >> script.answer_ms;
    if (word == "drain_ms") words >> script.drain_ms;
    if (word == "die") script.dies = true;
    if (word == "mute") script.mute = true;
    if (word == "hang") script.hangs = true;
    if (word == "vague") script.vague = true;
    if (word == "talk") script.talks = true;
    if (word == "refuse") {
      words >> script.refuse_kind;
      std::getline(words >> std::ws, script.refuse_text);
    }
    if (word == "fail") {
      words >> script.fail_kind;
      std::getline(words >> std::ws, script.fail_text);
    }
  }
  return script;
}

void note(const std::filesystem::path& model, const std::string& what) {
  const std::string line = what + " " + model.stem().string() + "\n";
  const int fd = ::open((model.parent_path() / "events").c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (fd < 0 || ::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  ::close(fd);
}

// The reply to a mount, an unmount or a question for what a config says; exits for "die".
Frame adapter_answer(const std::filesystem::path& model, const Frame& frame) {
  const std::string name = *frame.body.get("name")->string();
  json::Object body;
  body["id"] = *frame.body.get("id");
  if (frame.kind == FrameKind::adapter_unmount) {
    note(model, "unmount " + name);
    return {FrameKind::reply, std::move(body)};
  }
  char text[64] = {};
  if (::pread(frame.files.at(0).get(), text, sizeof text - 1, 0) < 0) std::abort();
  const std::string config = text;
  if (config.starts_with("die")) std::exit(1);
  if (!config.starts_with("good")) {
    Event refusal{.kind = Event::Kind::error};
    refusal.id = static_cast<uint64_t>(frame.body.get("id")->as_int("id"));
    refusal.answer = kWholeRequest;
    refusal.reason = "invalid_argument";
    refusal.text = config;
    return to_frame(refusal);
  }
  if (frame.kind == FrameKind::adapter_describe) {
    json::Object facts;
    facts["compatible"] = true;
    body["adapter"] = std::move(facts);
    return {FrameKind::reply, std::move(body)};
  }
  note(model, "mount " + name + (frame.body.get("default")->as_bool("default") ? "*" : ""));
  json::Object facts;
  facts["id"] = name;
  facts["digest"] = frame.body.get("digest") ? *frame.body.get("digest") : json::Value(config);
  body["adapter"] = std::move(facts);
  return {FrameKind::reply, std::move(body)};
}

// An event of the request that a frame is about.
Event event_of(const Frame& frame, Event::Kind kind) {
  Event event{.kind = kind};
  event.id = static_cast<uint64_t>(frame.body.get("id")->as_int("id"));
  if (kind == Event::Kind::text) event.text = "word";
  if (kind == Event::Kind::finish) event.reason = "stop";
  return event;
}

void sleep_ms(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// A model of 100 positions, all of which fit or none.
json::Object headers(const Script& script, int64_t budget, const char* positions) {
  json::Object facts, fit, report;
  report["max_safe_context"] = script.bytes <= budget ? 100 : 0;
  report["fits"] = script.bytes <= budget;
  fit["context_tokens"] = int64_t{positions ? std::atoll(positions) : 100};
  fit["typical_context_tokens"] = 100;
  fit["typical_decode_tps"] = 12.5;
  fit["report"] = std::move(report);
  facts["model_type"] = "scripted";
  facts["size_bytes"] = script.bytes;
  facts["quant_bits"] = 4;
  facts["vision"] = false;
  facts["support_tier"] = "supported";
  facts["fit"] = std::move(fit);
  return facts;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path model = argv[1];
  const int64_t budget = std::atoll(argv[2]);
  const Script script = read_script(model);
  const std::string role = argc > 3 ? argv[3] : "";
  Wire wire(3, Wire::Files::taken);
  if (!wire.receive()) return 0;
  note(model, role.empty() ? "load" : role);
  if (script.hangs) wire.receive();
  if (script.dies) return 1;
  sleep_ms(script.load_ms);
  Event refusal{.kind = Event::Kind::error};
  if (!script.fail_kind.empty()) {
    refusal.reason = script.fail_kind;
    refusal.text = script.fail_text;
  } else if (role.empty() && script.bytes > budget) {
    refusal.reason = "out_of_memory";
    refusal.text = "needs " + std::to_string(script.bytes) + " bytes of " + std::to_string(budget);
    if (!script.vague) {
      refusal.needed_bytes = script.bytes;
      refusal.usable_bytes = budget;
    }
  }
  if (!refusal.reason.empty()) {
    wire.send(to_frame(refusal));
    return 1;
  }
  if (role == "headers") {
    wire.send({FrameKind::loaded, headers(script, budget, argc > 4 ? argv[4] : nullptr)});
    while (const std::optional<Frame> frame = wire.receive()) wire.send(adapter_answer(model, *frame));
    return 0;
  }
  json::Object facts;
  facts["memory_bytes"] = script.bytes;
  wire.send({FrameKind::loaded, std::move(facts)});
  if (role.empty()) note(model, "loaded");
  int64_t requests = 0;
  while (const std::optional<Frame> frame = wire.receive()) {
    if (script.mute) continue;
    if (frame->kind == FrameKind::drain) {
      if (script.drain_ms > 0) {
        sleep_ms(script.drain_ms);
        note(model, "drained");
      }
      return 0;
    }
    if (is_request(frame->kind)) wire.send(taken_frame(static_cast<uint64_t>(frame->body.get("id")->as_int("id"))));
    json::Object body;
    if (const json::Value* id = frame->body.get("id")) body["id"] = *id;
    if (frame->kind == FrameKind::adapter_mount || frame->kind == FrameKind::adapter_unmount) {
      wire.send(adapter_answer(model, *frame));
    } else if (frame->kind == FrameKind::tokenize) {
      if (++requests == script.die_at) return 1;
      sleep_ms(script.answer_ms);
      body["by"] = role.empty() ? "model" : "text worker";
      wire.send({FrameKind::reply, std::move(body)});
    } else if (frame->kind == FrameKind::stats) {
      wire.send({FrameKind::reply, std::move(body)});
    } else if (frame->kind == FrameKind::submit) {
      if (++requests == script.die_at) return 1;
      sleep_ms(script.answer_ms);
      if (!script.refuse_kind.empty()) {
        Event refused{.kind = Event::Kind::error};
        refused.id = static_cast<uint64_t>(frame->body.get("id")->as_int("id"));
        refused.answer = kWholeRequest;
        refused.reason = script.refuse_kind;
        refused.text = script.refuse_text;
        wire.send(to_frame(refused));
        continue;
      }
      note(model, "answer");
      wire.send(to_frame(event_of(*frame, script.talks ? Event::Kind::admitted : Event::Kind::finish)));
      if (script.talks) wire.send(to_frame(event_of(*frame, Event::Kind::text)));
    } else if (frame->kind == FrameKind::hold) {
      note(model, "hold");
    } else if (frame->kind == FrameKind::release) {
      note(model, "release");
      wire.send(to_frame(event_of(*frame, Event::Kind::finish)));
    }
  }
  return 0;
}
