#include "server/worker/prompt.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "server/request_error.h"
#include "server/sampling.h"
#include "text/tools/history.h"

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

json::Value conversation(const Generation& g, std::optional<bool> thinks, json::Value messages,
                         const json::Value& tools) {
  json::Object o;
  if (thinks) o["enable_thinking"] = *thinks;
  for (const auto& [key, value] : g.template_kwargs) o[key] = value;
  if (g.thinking) o["enable_thinking"] = *g.thinking;
  if (!g.reasoning_effort.empty()) o["reasoning_effort"] = g.reasoning_effort;
  o["messages"] = std::move(messages);
  if (!tools.is_null()) o["tools"] = tools;
  return o;
}

// Ids that complete the closing marker from each of its bytes on. Where a part of it has no exact spelling the whole
// marker follows that part.
std::vector<std::vector<int32_t>> find_closers(const PromptModel& model, const std::string& close) {
  const text::Tokenizer& tokenizer = model.text.tokenizer();
  const auto spelled = [&](const std::vector<int32_t>& ids) {
    std::string text;
    for (const int32_t id : ids) text += answer_bytes(model, id, false, {.reasoning = true});
    return text;
  };
  std::vector<std::vector<int32_t>> closers;
  for (size_t at = 0; at < close.size(); ++at) {
    const std::string rest = close.substr(at);
    std::vector<int32_t> ids = tokenizer.encode(rest, {.parse_special = at == 0, .add_special = false});
    const std::string text = spelled(ids);
    if (at == 0 && (!text.ends_with(close) || text.find_first_not_of(' ') != text.size() - close.size())) return {};
    closers.push_back(at == 0 || text == rest ? std::move(ids) : closers.front());
  }
  return closers;
}

}  // namespace

std::string_view answer_bytes(const PromptModel& model, int32_t id, bool first, Markup markup) {
  const text::Tokenizer& tokenizer = model.text.tokenizer();
  if (id >= tokenizer.vocab_size()) return {};  // padded heads have ids that no piece stands for
  if (!tokenizer.is_special(id)) return tokenizer.piece_bytes(id, first);
  const auto is_in = [&](const std::vector<int32_t>& ids) { return std::ranges::binary_search(ids, id); };
  const bool looked_for =
      (markup.calls && is_in(model.call_markup)) || (markup.reasoning && is_in(model.reasoning_markup));
  return looked_for ? tokenizer.piece(id) : std::string_view();
}

std::optional<text::AnswerOptions> answer_options(const Generation& g, const PromptModel& model, const Prompt& prompt,
                                                  Calls calls) {
  if (g.kind == Generation::Kind::raw || (!model.reasoning && prompt.tools.empty())) return std::nullopt;
  text::AnswerOptions options;
  options.reasoning = model.reasoning;
  options.reasoning_open = prompt.reasoning_open;
  options.dialect = model.dialect;
  options.tools = prompt.tools;
  options.stream_calls = calls == Calls::streamed;
  options.parallel_calls = g.parallel_tool_calls;
  options.bare_calls = g.format.is_null();  // an answer in JSON was asked for
  const std::string* choice = g.tool_choice.string();
  options.calls_only = !prompt.tools.empty() && (g.tool_choice.object() || (choice && *choice == "required"));
  for (const auto* ids : {&model.call_markup, &model.reasoning_markup})
    for (const int32_t id : *ids) options.control.emplace_back(model.text.tokenizer().piece(id));
  return options;
}

void find_markup(PromptModel& model, const std::string& template_source, std::optional<text::ToolDialect> dialect) {
  const text::Tokenizer& tokenizer = model.text.tokenizer();
  model.dialect = dialect ? *dialect : text::choose_dialect(template_source, tokenizer);
  model.reasoning = text::choose_reasoning(template_source, tokenizer);
  const text::ToolShape shape = text::tool_shape(model.dialect);
  constexpr std::string_view kGemmaQuote = "<|\"|>";  // around strings of ArgumentForm::gemma_values
  std::string calls;
  for (const std::string_view part : {shape.opener, shape.list_open, shape.before_name, shape.after_name,
                                      shape.before_key, shape.after_key, shape.after_value, shape.after_arguments,
                                      shape.between, shape.closer, shape.quote_open, shape.quote_close, kGemmaQuote}) {
    calls += part;
    calls += '\n';
  }
  const std::string reasoning = model.reasoning ? model.reasoning->open + "\n" + model.reasoning->close : "";
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_special(id) || tokenizer.piece(id).empty()) continue;
    if (calls.find(tokenizer.piece(id)) != std::string::npos) model.call_markup.push_back(id);
    if (reasoning.find(tokenizer.piece(id)) != std::string::npos) model.reasoning_markup.push_back(id);
  }
  if (model.reasoning) model.closers = find_closers(model, model.reasoning->close);
}

void find_markup(PromptModel& model, const model::Templates& templates, std::optional<text::ToolDialect> dialect) {
  for (const char* name : {"tool_use", "default"})
    if (const auto found = templates.find(name); found != templates.end())
      return find_markup(model, found->second, dialect);
}

std::vector<text::ToolSpec> tool_specs(const json::Value& tools) {
  std::vector<text::ToolSpec> specs;
  for (const json::Value& tool : tools.as_array("tools")) {
    const json::Value* function = tool.get("function");
    const json::Value* name = function ? function->get("name") : nullptr;
    if (!name) fail(ErrorKind::invalid_argument, "tools: a function without a name");
    const json::Value* description = function->get("description");
    const json::Value* parameters = function->get("parameters");
    specs.push_back({.name = name->as_string("tools: name"),
                     .description = description ? description->as_string("tools: description") : "",
                     .parameters = parameters ? *parameters : json::Value()});
  }
  return specs;
}

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

std::optional<bool> thinking_of(const Generation& g, const PromptModel& model) {
  if (g.thinking) return g.thinking;
  const json::Value* thinks = model.defaults.find("enable_thinking");
  return thinks ? std::optional(thinks->as_bool("enable_thinking")) : std::nullopt;
}

PromptTooLong::PromptTooLong(int64_t tokens, int64_t context)
    : Error(ErrorKind::out_of_memory,
            fmt::format("This model's maximum context length is {} tokens. The prompt has {} tokens and exceeds the "
                        "available context size.",
                        context, tokens)),
      usage_{.prompt = tokens, .max_tokens = context} {}

PromptTooLong::PromptTooLong(const text::TextTooLong& text, int64_t context)
    : Error(ErrorKind::out_of_memory,
            fmt::format("This model's maximum context length is {}{} bytes of text. The prompt has {} bytes of text "
                        "and exceeds the available context size.",
                        context > 0 ? fmt::format("{} tokens and ", context) : "", text.bytes_max(), text.bytes())),
      usage_{.max_tokens = context},
      is_text_(true) {}

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
    const bool offers = !g.tools.is_null() && !(g.tool_choice.string() && *g.tool_choice.string() == "none");
    if (offers) prompt.tools = tool_specs(g.tools);
    const json::Value messages = text::messages_for_template(
        arranged(g.messages),
        {.dialect = model.dialect, .tools = prompt.tools, .parallel_calls = g.parallel_tool_calls});
    // Where the template knows no tools they are described in the system text.
    const bool by_template = offers && model.dialect != text::ToolDialect::generic;
    const json::Value tools = by_template ? text::tools_for_template(prompt.tools) : json::Value();
    const auto render = [&](const json::Value& turns) {
      try {
        return model.text.render(conversation(g, thinking_of(g, model), turns, tools), true, model.limits.rendering());
      } catch (const text::TextTooLong& error) {
        throw PromptTooLong(error, model.context);
      }
    };
    text::Rendered rendered;
    try {
      rendered = render(messages);
    } catch (const PromptTooLong&) {
      throw;
    } catch (const Error&) {
      const json::Value joined = merged(messages);
      if (joined == messages) throw;
      rendered = render(joined);
    }
    prompt.ids = model.text.encode_rendered(rendered);
    prompt.rendered = std::move(rendered.text);
    prompt.reasoning_open = model.reasoning && text::opens_reasoning(*model.reasoning, prompt.rendered);
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
  request.max_tokens = g.signal ? 0 : g.max_tokens.value_or(flag ? flag->as_int("max_tokens") : fallback);
  const int64_t room = model.context - static_cast<int64_t>(prompt.ids.size()) + 1;
  if (g.strict_admission && g.max_tokens && *g.max_tokens > room)
    throw RequestError("max_tokens",
                       fmt::format("{} prompt tokens and max_tokens of {} exceed the available context of {} tokens",
                                   prompt.ids.size(), *g.max_tokens, model.context));
  request.max_tokens = std::min(request.max_tokens, room);
  request.top_logprobs = g.top_logprobs;
  request.end_ids = model.end_ids;
  request.newline_ids = model.newline_ids;
  request.owner = g.owner;
  return request;
}

}  // namespace hearth::server
