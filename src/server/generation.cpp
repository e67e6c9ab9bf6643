#include "server/generation.h"

#include "base/error.h"

namespace hearth::server {
namespace {

const json::Value& need(const json::Value& body, std::string_view key) {
  const json::Value* value = body.object() ? body.object()->find(key) : nullptr;
  if (!value) fail(ErrorKind::corrupt_file, "a frame without \"{}\"", key);
  return *value;
}
std::string text_of(const json::Value& body, std::string_view key) {
  const json::Value* value = body.get(key);
  return value ? value->as_string(key) : std::string();
}
int64_t whole_of(const json::Value& body, std::string_view key, int64_t fallback = 0) {
  const json::Value* value = body.get(key);
  return value ? value->as_int(key) : fallback;
}
double number_of(const json::Value& body, std::string_view key) {
  const json::Value* value = body.get(key);
  return value ? value->as_double(key) : 0;
}
bool flag_of(const json::Value& body, std::string_view key, bool fallback) {
  const json::Value* value = body.get(key);
  return value ? value->as_bool(key) : fallback;
}
std::optional<int64_t> maybe_whole(const json::Value& body, std::string_view key) {
  const json::Value* value = body.get(key);
  if (!value) return std::nullopt;
  return value->as_int(key);
}

}  // namespace

json::Value to_json(const Generation& g) {
  json::Object o;
  o["id"] = g.id;
  o["kind"] = g.kind == Generation::Kind::chat ? "chat" : "raw";
  if (g.kind == Generation::Kind::chat) {
    o["messages"] = g.messages;
    if (!g.tools.is_null()) o["tools"] = g.tools;
  } else {
    o["prompt"] = g.prompt;
  }
  o["sampling"] = g.sampling;
  if (g.max_tokens) o["max_tokens"] = *g.max_tokens;
  json::Array stops;
  for (const std::string& stop : g.stops) stops.emplace_back(stop);
  o["stops"] = std::move(stops);
  o["n"] = g.n;
  if (g.top_logprobs) o["top_logprobs"] = *g.top_logprobs;
  if (g.raw_pieces) o["raw_pieces"] = true;
  if (g.signal) o["signal"] = true;
  if (!g.tool_choice.is_null()) o["tool_choice"] = g.tool_choice;
  o["parallel_tool_calls"] = g.parallel_tool_calls;
  o["tool_grammar"] = g.tool_grammar;
  if (!g.format.is_null()) o["format"] = g.format;
  if (!g.format_field.empty()) o["format_field"] = g.format_field;
  if (g.any_whitespace) o["any_whitespace"] = true;
  o["template_kwargs"] = g.template_kwargs;
  if (g.thinking) o["thinking"] = *g.thinking;
  if (!g.reasoning_effort.empty()) o["reasoning_effort"] = g.reasoning_effort;
  if (g.reasoning_budget) o["reasoning_budget"] = *g.reasoning_budget;
  if (!g.adapter.empty()) o["adapter"] = g.adapter;
  o["owner"] = g.owner;
  o["stream"] = g.stream;
  o["strict_admission"] = g.strict_admission;
  return o;
}

Generation generation_of(const json::Value& body) {
  Generation g;
  g.id = static_cast<uint64_t>(need(body, "id").as_int("id"));
  g.kind = need(body, "kind").as_string("kind") == "chat" ? Generation::Kind::chat : Generation::Kind::raw;
  if (g.kind == Generation::Kind::chat) g.messages = need(body, "messages");
  if (const json::Value* tools = body.get("tools")) g.tools = *tools;
  g.prompt = text_of(body, "prompt");
  g.sampling = need(body, "sampling").as_object("sampling");
  g.max_tokens = maybe_whole(body, "max_tokens");
  for (const json::Value& stop : need(body, "stops").as_array("stops")) g.stops.push_back(stop.as_string("stops"));
  g.n = whole_of(body, "n", 1);
  g.top_logprobs = maybe_whole(body, "top_logprobs");
  g.raw_pieces = flag_of(body, "raw_pieces", false);
  g.signal = flag_of(body, "signal", false);
  if (const json::Value* choice = body.get("tool_choice")) g.tool_choice = *choice;
  g.parallel_tool_calls = flag_of(body, "parallel_tool_calls", true);
  g.tool_grammar = flag_of(body, "tool_grammar", true);
  if (const json::Value* format = body.get("format")) g.format = *format;
  g.format_field = text_of(body, "format_field");
  g.any_whitespace = flag_of(body, "any_whitespace", false);
  g.template_kwargs = need(body, "template_kwargs").as_object("template_kwargs");
  if (const json::Value* thinking = body.get("thinking")) g.thinking = thinking->as_bool("thinking");
  g.reasoning_effort = text_of(body, "reasoning_effort");
  g.reasoning_budget = maybe_whole(body, "reasoning_budget");
  g.adapter = text_of(body, "adapter");
  g.owner = text_of(body, "owner");
  g.stream = flag_of(body, "stream", false);
  g.strict_admission = flag_of(body, "strict_admission", false);
  return g;
}

namespace {

json::Value usage_json(const Usage& u) {
  json::Object o;
  o["prompt"] = u.prompt;
  o["cached"] = u.cached;
  o["completion"] = u.completion;
  o["reasoning"] = u.reasoning;
  o["max_tokens"] = u.max_tokens;
  o["queue_ms"] = u.queue_ms;
  o["prefill_ms"] = u.prefill_ms;
  o["decode_ms"] = u.decode_ms;
  return o;
}

Usage usage_of(const json::Value& o) {
  return {.prompt = whole_of(o, "prompt"),
          .cached = whole_of(o, "cached"),
          .completion = whole_of(o, "completion"),
          .reasoning = whole_of(o, "reasoning"),
          .max_tokens = whole_of(o, "max_tokens"),
          .queue_ms = number_of(o, "queue_ms"),
          .prefill_ms = number_of(o, "prefill_ms"),
          .decode_ms = number_of(o, "decode_ms")};
}

struct KindPair {
  Event::Kind event;
  FrameKind frame;
};
constexpr KindPair kKinds[] = {
    {Event::Kind::admitted, FrameKind::admitted},   {Event::Kind::text, FrameKind::text},
    {Event::Kind::reasoning, FrameKind::reasoning}, {Event::Kind::tool_begin, FrameKind::tool_begin},
    {Event::Kind::tool_args, FrameKind::tool_args}, {Event::Kind::tool_end, FrameKind::tool_end},
    {Event::Kind::finish, FrameKind::finish},       {Event::Kind::error, FrameKind::error},
};

}  // namespace

Frame to_frame(const Event& e) {
  json::Object o;
  o["id"] = e.id;
  o["answer"] = e.answer;
  const auto some = [&](const char* key, const std::string& text) {
    if (!text.empty()) o[key] = text;
  };
  some("text", e.text);
  if (e.tokens > 0) o["tokens"] = e.tokens;
  switch (e.kind) {
    case Event::Kind::admitted: o["usage"] = usage_json(e.usage); break;
    case Event::Kind::text:
      if (!e.logprobs.is_null()) o["logprobs"] = e.logprobs;
      break;
    case Event::Kind::reasoning: break;
    case Event::Kind::tool_begin:
      o["call"] = e.call;
      o["name"] = e.name;
      o["index"] = e.index;
      break;
    case Event::Kind::tool_args:
    case Event::Kind::tool_end: o["index"] = e.index; break;
    case Event::Kind::finish:
      o["reason"] = e.reason;
      some("stop", e.stop);
      if (!e.signal.is_null()) o["signal"] = e.signal;
      o["usage"] = usage_json(e.usage);
      break;
    case Event::Kind::error:
      o["reason"] = e.reason;
      some("code", e.code);
      some("param", e.param);
      some("limit", e.limit);
      if (e.needed_bytes > 0) {
        o["needed_bytes"] = e.needed_bytes;
        o["usable_bytes"] = e.usable_bytes;
      }
      o["usage"] = usage_json(e.usage);
      break;
  }
  for (const KindPair& pair : kKinds)
    if (pair.event == e.kind) return {pair.frame, std::move(o)};
  HEARTH_CHECK(false, "an event of no kind");
  return {};
}

Event event_of(const Frame& frame) {
  Event e;
  bool found = false;
  for (const KindPair& pair : kKinds)
    if (pair.frame == frame.kind) e.kind = pair.event, found = true;
  if (!found) fail(ErrorKind::corrupt_file, "a frame of kind {} is no event", static_cast<int>(frame.kind));
  const json::Value& body = frame.body;
  e.id = static_cast<uint64_t>(need(body, "id").as_int("id"));
  e.answer = whole_of(body, "answer");
  e.text = text_of(body, "text");
  e.tokens = whole_of(body, "tokens");
  e.index = whole_of(body, "index");
  e.call = text_of(body, "call");
  e.name = text_of(body, "name");
  if (const json::Value* logprobs = body.get("logprobs")) e.logprobs = *logprobs;
  e.reason = text_of(body, "reason");
  e.stop = text_of(body, "stop");
  if (const json::Value* signal = body.get("signal")) e.signal = *signal;
  e.code = text_of(body, "code");
  e.param = text_of(body, "param");
  e.limit = text_of(body, "limit");
  e.needed_bytes = whole_of(body, "needed_bytes");
  e.usable_bytes = whole_of(body, "usable_bytes");
  if (const json::Value* usage = body.get("usage")) e.usage = usage_of(*usage);
  return e;
}

}  // namespace hearth::server
