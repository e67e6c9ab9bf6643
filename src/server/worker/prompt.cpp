#include "server/worker/prompt.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "server/sampling.h"

namespace hearth::server {
namespace {

constexpr int64_t kChatTokens = 65'536, kRawTokens = 512;  // of an answer, where nobody says (spec server 16)

std::string role_of(const json::Value& message) {
  const json::Value* role = message.get("role");
  return role && role->string() ? *role->string() : std::string();
}

// Text of a message's content: a string, or the text parts of a list.
std::string content_text(const json::Value& message) {
  const json::Value* content = message.get("content");
  if (!content) return "";
  if (const std::string* text = content->string()) return *text;
  std::string joined;
  if (const json::Array* parts = content->array())
    for (const json::Value& part : *parts)
      if (const json::Value* text = part.get("text"); text && text->string()) joined += *text->string();
  return joined;
}

// Neighbours of one role joined, for templates that insist on taking turns.
json::Value merged(const json::Value& messages) {
  json::Array out;
  for (const json::Value& message : *messages.array()) {
    const std::string role = role_of(message);
    const bool plain = (role == "user" || role == "assistant") && !message.get("tool_calls");
    json::Value* last = out.size() > 0 ? &out[out.size() - 1] : nullptr;
    if (plain && last && role_of(*last) == role && !last->get("tool_calls"))
      (*last->object())["content"] = content_text(*last) + "\n\n" + content_text(message);
    else out.push_back(message);
  }
  return out;
}

json::Value conversation(const Generation& g, json::Value messages) {
  json::Object o;
  for (const auto& [key, value] : g.template_kwargs) o[key] = value;
  if (g.thinking) o["enable_thinking"] = *g.thinking;
  if (!g.reasoning_effort.empty()) o["reasoning_effort"] = g.reasoning_effort;
  o["messages"] = std::move(messages);
  const bool shows_tools = !g.tools.is_null() && !(g.tool_choice.string() && *g.tool_choice.string() == "none");
  if (shows_tools) o["tools"] = g.tools;
  return o;
}

}  // namespace

json::Value arranged(const json::Value& messages) {
  json::Array out;
  std::string system;
  bool has_system = false;
  for (const json::Value& message : messages.as_array("messages")) {
    const std::string role = role_of(message);
    if (role == "system" || role == "developer") {
      system += (has_system ? "\n\n" : "") + content_text(message);
      has_system = true;
      continue;
    }
    json::Value copy = message;
    if (!copy.get("content")) (*copy.object())["content"] = "";
    out.push_back(std::move(copy));
  }
  if (!has_system) return out;
  json::Object first;
  first["role"] = "system";
  first["content"] = system;
  json::Array all;
  all.push_back(std::move(first));
  for (json::Value& message : out) all.push_back(std::move(message));
  return all;
}

Prompt make_prompt(const Generation& g, const PromptModel& model) {
  Prompt prompt;
  const text::Tokenizer& tokenizer = model.text.tokenizer();
  if (g.kind == Generation::Kind::raw) {
    prompt.rendered = g.prompt;
    prompt.ids = model.text.encode_text(g.prompt);
    if (prompt.ids.empty()) {
      if (!tokenizer.bos())
        fail(ErrorKind::invalid_argument, "prompt is empty and {} has no BOS token to begin with", model.name);
      prompt.ids.push_back(*tokenizer.bos());
    }
  } else {
    if (!model.text.has_template())
      fail(ErrorKind::invalid_argument, "{} has no chat template: it is a base model, use /v1/completions", model.name);
    const json::Value messages = arranged(g.messages);
    text::Rendered rendered;
    try {
      rendered = model.text.render(conversation(g, messages));
    } catch (const Error&) {
      json::Value joined = merged(messages);
      if (joined == messages) throw;
      rendered = model.text.render(conversation(g, std::move(joined)));
    }
    prompt.ids = model.text.encode_rendered(rendered);
    prompt.rendered = std::move(rendered.text);
  }
  prompt.has_text = std::any_of(prompt.ids.begin(), prompt.ids.end(),
                                [&](int32_t id) { return !tokenizer.is_special(id) && id < tokenizer.vocab_size(); });
  return prompt;
}

decode::Request make_request(const Generation& g, const PromptModel& model, const Prompt& prompt, int64_t answer) {
  decode::Request request;
  request.prompt = prompt.ids;
  request.sampler = sampler_options(g.sampling, model.defaults, model.V);
  if (!g.sampling.find("seed")) request.sampler.seed = entropy64() >> 1;
  request.sampler.seed += static_cast<uint64_t>(answer);
  const int64_t fallback = g.kind == Generation::Kind::chat ? kChatTokens : kRawTokens;
  const json::Value* flag = model.defaults.find("max_tokens");
  request.max_tokens = g.max_tokens.value_or(flag ? flag->as_int("max_tokens") : fallback);
  const int64_t room = model.context - static_cast<int64_t>(prompt.ids.size()) + 1;
  if (g.strict_admission && g.max_tokens && *g.max_tokens > room)
    fail(ErrorKind::out_of_memory, "{} prompt tokens and max_tokens of {} exceed the available context of {} tokens",
         prompt.ids.size(), *g.max_tokens, model.context);
  request.max_tokens = std::min(request.max_tokens, room);
  request.top_logprobs = g.top_logprobs;
  request.end_ids = model.end_ids;
  request.newline_ids = model.newline_ids;
  request.owner = g.owner;
  request.space = g.owner + "\n" + g.adapter;
  return request;
}

}  // namespace hearth::server
