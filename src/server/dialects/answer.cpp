#include "server/dialects/answer.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "net/sse.h"

namespace hearth::server {

void Collected::grow(Event::Kind kind, size_t at, size_t bytes) {
  if (bytes == 0) return;
  if (!parts.empty() && parts.back().kind == kind) parts.back().end += bytes;
  else parts.push_back({kind, at, at + bytes});
}

void Collected::add(const Event& event) {
  switch (event.kind) {
    case Event::Kind::text:
      grow(event.kind, text.size(), event.text.size());
      text += event.text;
      if (const json::Array* list = event.logprobs.array())
        for (const json::Value& entry : *list) logprobs.push_back(entry);
      break;
    case Event::Kind::reasoning:
      grow(event.kind, reasoning.size(), event.text.size());
      reasoning += event.text;
      break;
    case Event::Kind::tool_begin:
      parts.push_back({event.kind, calls.size(), calls.size() + 1});
      calls.push_back({event.call, event.name, "", false});
      break;
    case Event::Kind::tool_args:
      if (!calls.empty()) calls.back().arguments += event.text;
      break;
    case Event::Kind::finish:
      reason = event.reason;
      stop = event.stop;
      signal = event.signal;
      usage = event.usage;
      break;
    case Event::Kind::tool_end:
      if (!calls.empty()) calls.back().whole = true;
      break;
    case Event::Kind::admitted:
    case Event::Kind::error: break;
  }
}

std::vector<Event> Collected::events() const {
  std::vector<Event> list;
  const json::Array* pending = logprobs.size() > 0 ? &logprobs : nullptr;
  for (const Part& part : parts) {
    Event event{.kind = part.kind};
    if (part.kind == Event::Kind::tool_begin) {
      const Call& call = calls[part.begin];
      event.index = static_cast<int64_t>(part.begin);
      event.call = call.id;
      event.name = call.name;
      list.push_back(event);
      event.kind = Event::Kind::tool_args;
      event.text = call.arguments;
      list.push_back(event);
      event.kind = Event::Kind::tool_end;
      if (call.whole) list.push_back(std::move(event));
      continue;
    }
    event.text = (part.kind == Event::Kind::text ? text : reasoning).substr(part.begin, part.end - part.begin);
    if (part.kind == Event::Kind::text && pending) event.logprobs = *std::exchange(pending, nullptr);
    list.push_back(std::move(event));
  }
  Event end{.kind = Event::Kind::finish};
  end.reason = reason;
  end.stop = stop;
  end.usage = usage;
  list.push_back(std::move(end));
  return list;
}

Usage total(const std::vector<Collected>& answers) {
  Usage sum;
  for (const Collected& answer : answers) {
    sum.prompt = answer.usage.prompt;
    sum.cached = answer.usage.cached;
    sum.completion += answer.usage.completion;
    sum.reasoning += answer.usage.reasoning;
    sum.queue_ms = std::max(sum.queue_ms, answer.usage.queue_ms);
    sum.prefill_ms = std::max(sum.prefill_ms, answer.usage.prefill_ms);
    sum.decode_ms = std::max(sum.decode_ms, answer.usage.decode_ms);
  }
  return sum;
}

std::string named_event(std::string_view name, json::Object body) {
  json::Object o;
  o["type"] = name;
  for (json::Member& member : body.members) o[member.first] = std::move(member.second);
  return net::sse_event(name, json::dump(o));
}

std::string random_id(std::string_view prefix) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  Random random(entropy64());
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id += kLetters[random.below(kLetters.size())];
  return id;
}

}  // namespace hearth::server
