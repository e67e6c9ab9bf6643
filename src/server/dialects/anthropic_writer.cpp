// Anthropic's answers: blocks of thinking, text and tool_use, one after the other.
#include <optional>

#include "base/log.h"
#include "net/sse.h"
#include "server/dialects/anthropic.h"

namespace hearth::server::anthropic {
namespace {

// Ids come from the worker as call_...; clients of this dialect know them as toolu_...
std::string tool_id(const std::string& call) {
  constexpr std::string_view kOurs = "call_";
  return "toolu_" + (call.starts_with(kOurs) ? call.substr(kOurs.size()) : call);
}

std::string stop_reason(const std::string& reason, const std::string& stop) {
  if (reason == "length") return "max_tokens";
  if (reason == "tool_calls") return "tool_use";
  return stop.empty() ? "end_turn" : "stop_sequence";
}

json::Value stop_sequence(const std::string& stop) { return stop.empty() ? json::Value() : json::Value(stop); }

json::Object usage_json(const Usage& usage) {
  json::Object o, details;
  o["input_tokens"] = usage.prompt - usage.cached;
  o["cache_creation_input_tokens"] = 0;
  o["cache_read_input_tokens"] = usage.cached;
  o["output_tokens"] = usage.completion;
  details["thinking_tokens"] = usage.reasoning;
  o["output_tokens_details"] = std::move(details);
  return o;
}

json::Object message_json(const std::string& id, const AnswerHead& head, json::Array content) {
  json::Object o;
  o["id"] = id;
  o["type"] = "message";
  o["role"] = "assistant";
  o["model"] = head.model;
  o["content"] = std::move(content);
  o["stop_reason"] = nullptr;
  o["stop_sequence"] = nullptr;
  return o;
}

// A block as it begins: without its text.
json::Object empty_block(const Event& event) {
  json::Object o;
  switch (event.kind) {
    case Event::Kind::reasoning:
      o["type"] = "thinking";
      o["thinking"] = "";
      o["signature"] = "";
      break;
    case Event::Kind::tool_begin:
      o["type"] = "tool_use";
      o["id"] = tool_id(event.call);
      o["name"] = event.name;
      o["input"] = json::Object();
      break;
    default:
      o["type"] = "text";
      o["text"] = "";
      break;
  }
  return o;
}

// A call's arguments; nullopt where they are no JSON object.
std::optional<json::Value> input_of(const std::string& arguments) {
  if (arguments.empty()) return json::Object();
  try {
    json::Value input = json::parse(arguments, "the arguments of a call");
    if (input.is_object()) return input;
  } catch (const Error& error) {
    log::warn("server", "{}", error.what());
  }
  return std::nullopt;
}

// The blocks of a whole answer. A call that the token limit cut is left out.
json::Array blocks_of(const Collected& answer) {
  json::Array blocks;
  const std::vector<Event> events = answer.events();
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == Event::Kind::finish) break;
    json::Object block = empty_block(events[i]);
    if (events[i].kind == Event::Kind::tool_begin) {
      const Event& arguments = events[++i];
      if (events[i + 1].kind != Event::Kind::tool_end) continue;
      ++i;
      std::optional<json::Value> input = input_of(arguments.text);
      if (!input) continue;
      block["input"] = std::move(*input);
    } else {
      block[events[i].kind == Event::Kind::reasoning ? "thinking" : "text"] = events[i].text;
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

class MessagesWriter final : public AnswerWriter {
 public:
  MessagesWriter() : id_(random_id("msg_")) {}

  std::string begin(const AnswerHead& head, const Usage& admitted) override {
    json::Object o, message = message_json(id_, head, {});
    Usage usage = admitted;
    usage.completion = usage.reasoning = 0;
    message["usage"] = usage_json(usage);
    o["message"] = std::move(message);
    return named_event("message_start", std::move(o));
  }

  std::string event(const Event& e) override {
    switch (e.kind) {
      case Event::Kind::text: return e.text.empty() ? "" : run(e, "text_delta", "text");
      case Event::Kind::reasoning: return e.text.empty() ? "" : run(e, "thinking_delta", "thinking");
      case Event::Kind::tool_begin: return next(e);
      case Event::Kind::tool_args: return e.text.empty() ? "" : delta(e.text, "input_json_delta", "partial_json");
      case Event::Kind::tool_end: return close();
      case Event::Kind::finish: {
        json::Object o, d;
        d["stop_reason"] = stop_reason(e.reason, e.stop);
        d["stop_sequence"] = stop_sequence(e.stop);
        o["delta"] = std::move(d);
        o["usage"] = usage_json(e.usage);
        return close() + named_event("message_delta", std::move(o));
      }
      case Event::Kind::admitted:
      case Event::Kind::error: break;
    }
    return "";
  }

  std::string end() override { return named_event("message_stop", {}); }

  std::string failure(const Problem& problem, std::string_view request_id) override {
    return net::sse_event("error", json::dump(error_json(Dialect::anthropic, problem, request_id)));
  }
  std::string ping() override { return named_event("ping", {}); }

  json::Value document(const AnswerHead& head, const std::vector<Collected>& answers) override {
    const Collected& answer = answers.front();
    json::Object o = message_json(id_, head, blocks_of(answer));
    o["stop_reason"] = stop_reason(answer.reason, answer.stop);
    o["stop_sequence"] = stop_sequence(answer.stop);
    o["usage"] = usage_json(answer.usage);
    return o;
  }

 private:
  // Text or reasoning: the open block grows if it is of this kind.
  std::string run(const Event& e, const char* type, const char* key) {
    std::string out;
    if (!open_ || open_kind_ != e.kind) out = next(e);
    return out + delta(e.text, type, key);
  }

  std::string next(const Event& e) {
    std::string out = close();
    return out += open(e);
  }

  std::string open(const Event& e) {
    open_ = true;
    open_kind_ = e.kind;
    json::Object o;
    o["index"] = index_;
    o["content_block"] = empty_block(e);
    return named_event("content_block_start", std::move(o));
  }

  std::string delta(const std::string& text, const char* type, const char* key) const {
    json::Object o, d;
    d["type"] = type;
    d[key] = text;
    o["index"] = index_;
    o["delta"] = std::move(d);
    return named_event("content_block_delta", std::move(o));
  }

  std::string close() {
    if (!open_) return "";
    open_ = false;
    json::Object o;
    o["index"] = index_++;
    return named_event("content_block_stop", std::move(o));
  }

  std::string id_;
  int64_t index_ = 0;  // of the open block, or the next one
  bool open_ = false;
  Event::Kind open_kind_{};
};

}  // namespace

std::unique_ptr<AnswerWriter> messages_writer() { return std::make_unique<MessagesWriter>(); }

}  // namespace hearth::server::anthropic
