#include "server/dialects/answer.h"

#include "base/random.h"

namespace hearth::server {

void Collected::add(const Event& event) {
  switch (event.kind) {
    case Event::Kind::text:
      text += event.text;
      if (const json::Array* list = event.logprobs.array())
        for (const json::Value& entry : *list) logprobs.push_back(entry);
      break;
    case Event::Kind::reasoning: reasoning += event.text; break;
    case Event::Kind::tool_begin: calls.push_back({event.call, event.name, ""}); break;
    case Event::Kind::tool_args:
      if (!calls.empty()) calls.back().arguments += event.text;
      break;
    case Event::Kind::finish:
      reason = event.reason;
      stop = event.stop;
      usage = event.usage;
      break;
    case Event::Kind::admitted:
    case Event::Kind::tool_end:
    case Event::Kind::error: break;
  }
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

std::string random_id(std::string_view prefix) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  Random random(entropy64());
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id += kLetters[random.below(kLetters.size())];
  return id;
}

}  // namespace hearth::server
