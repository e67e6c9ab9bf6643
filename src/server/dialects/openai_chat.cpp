#include "server/dialects/openai_chat.h"

#include <algorithm>

#include "net/sse.h"
#include "server/dialects/openai_stream.h"
#include "server/dialects/sampling_fields.h"
#include "server/limits.h"

namespace hearth::server::openai {
namespace {

constexpr Field kFields[] = {
    {"model", FieldType::string, "a name of /v1/models; empty: the default model", 0, 1024},
    {"messages", FieldType::array, "the conversation", 1, most::kMessages, {}, true},
    {"stream", FieldType::boolean, "server-sent events"},
    {"stream_options", FieldType::object, "include_usage: a last chunk with the usage"},
    {"max_tokens", FieldType::integer, "tokens of the answer at most", 0, 1e9},
    {"max_completion_tokens", FieldType::integer, "the same; wins", 0, 1e9},
    {"stop", FieldType::string_or_array, "up to 16 strings that end the answer"},
    {"n", FieldType::integer, "answers to one prompt", 1, 8},
    {"logprobs",
     FieldType::boolean,
     "log-probabilities of the tokens",
     -kUnbounded,
     kUnbounded,
     {},
     false,
     "logprobs must be of type bool"},
    {"top_logprobs",
     FieldType::integer,
     "the likeliest tokens beside each; -1: unset",
     -1,
     20,
     {},
     false,
     "top_logprobs must be of type int"},
    {"logprobs_format", FieldType::string, "openai or mlx", -kUnbounded, kUnbounded, "openai|mlx"},
    {"tools", FieldType::array, "functions that the model may call", 0, kToolsMax},
    {"tool_choice", FieldType::string_or_object, "none, auto, required, or a function"},
    {"parallel_tool_calls", FieldType::boolean, "false: one call at most"},
    {"tool_grammar", FieldType::boolean, "false: calls are not constrained by their schemas"},
    {"response_format", FieldType::object, "text, json_object, json_schema"},
    {"guided_grammar", FieldType::string, "an EBNF grammar that the answer follows", 0, most::kGrammarBytes},
    {"guided_regex", FieldType::string, "a regular expression that the whole answer matches", 0, most::kGrammarBytes},
    {"guided_choice", FieldType::array, "strings one of which is the answer", 1, 1024},
    {"guided_json", FieldType::string_or_object, "a JSON schema"},
    {"grammar", FieldType::string, "llama.cpp's name of guided_grammar", 0, most::kGrammarBytes},
    {"json_schema", FieldType::string_or_object, "llama.cpp's name of guided_json"},
    {"grammar_lazy", FieldType::boolean, "not supported"},
    {"structured_outputs", FieldType::object, "the same fields in one object"},
    {"best_of", FieldType::integer, "not supported beyond n", 0, 1e6},
    {"echo", FieldType::boolean, "not supported"},
    {"suffix", FieldType::string, "not supported"},
};

json::Value format_of(std::string kind, json::Value value) {
  json::Object o;
  o["kind"] = std::move(kind);
  o["value"] = std::move(value);
  return o;
}

}  // namespace

std::span<const Field> chat_fields() { return kFields; }

void check_messages(const json::Value& messages) {
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};
  const json::Array& list = *messages.array();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("messages[{}]", i);
    if (!list[i].object()) throw RequestError("messages", where + " must be an object");
    const json::Value* role = list[i].get("role");
    if (!role || !role->string()) throw RequestError("messages", where + ".role must be a string");
    if (std::find(std::begin(kRoles), std::end(kRoles), *role->string()) == std::end(kRoles))
      throw RequestError("messages", where + ".role must be one of system, developer, user, assistant, tool");
    if (const json::Value* content = list[i].get("content")) check_content(*content, where + ".content");
  }
}

void check_tools(const json::Value& tools) {
  const json::Array& list = *tools.array();
  if (list.size() > kToolsMax)
    throw RequestError("tools", fmt::format("tools has {} functions, it may have {}", list.size(), kToolsMax),
                       std::string(row_of(LimitId::tools).name));
  for (size_t i = 0; i < list.size(); ++i) {
    const json::Value* function = list[i].get("function");
    const json::Value* name = function ? function->get("name") : nullptr;
    if (!name || !name->string() || name->string()->empty() || name->string()->size() > 256)
      throw RequestError("tools", fmt::format("tools[{}].function.name must be a string of 1 to 256 bytes", i));
    if (const json::Value* parameters = function->get("parameters"); parameters && !parameters->object())
      throw RequestError("tools", fmt::format("tools[{}].function.parameters must be an object", i));
  }
}

json::Value read_tool_choice(const json::Value& choice, const json::Value& tools) {
  if (const std::string* word = choice.string()) {
    if (*word != "none" && *word != "auto" && *word != "required")
      throw RequestError("tool_choice", "tool_choice must be none, auto, required, or name a function");
    if (*word == "required" && (!tools.array() || tools.array()->size() == 0))
      throw RequestError("tool_choice", "tool_choice is required and there are no tools");
    return choice;
  }
  const json::Value* function = choice.get("function");
  const json::Value* name = function ? function->get("name") : choice.get("name");
  if (!name || !name->string()) throw RequestError("tool_choice", "tool_choice.function.name must be a string");
  bool known = false;
  if (const json::Array* list = tools.array())
    for (const json::Value& tool : *list)
      known |= tool.get("function") && tool.get("function")->get("name") && *tool.get("function")->get("name") == *name;
  if (!known)
    throw RequestError("tool_choice", fmt::format("tool_choice names {}, which is none of the tools", *name->string()));
  json::Object o;
  o["name"] = *name;
  return o;
}

json::Value read_response_format(const json::Value& format, std::string_view param) {
  const auto wrong = [&](std::string_view words) {
    return RequestError(std::string(param), fmt::format("{}{}", param, words));
  };
  const json::Value* type = format.get("type");
  if (!type || !type->string()) throw wrong(".type must be a string");
  if (*type->string() == "json_schema") {
    const json::Value* outer = format.get("json_schema");
    const json::Value* schema = outer ? outer->get("schema") : format.get("schema");
    if (!schema || !(schema->object() || schema->is_bool()))
      throw wrong(outer ? ".json_schema.schema must be an object" : ".schema must be an object");
    return format_of("json_schema", *schema);
  }
  if (*type->string() == "json_object") {
    const json::Value* schema = format.get("schema");  // llama.cpp's form of the above
    if (!schema || schema->is_null()) return format_of("json_object", {});
    if (!schema->object()) throw wrong(".schema must be an object");
    return format_of("json_schema", *schema);
  }
  if (*type->string() != "text") throw wrong(".type must be text, json_object or json_schema");
  return {};
}

namespace {

RequestError wrong_type(const std::string& field, std::string_view wanted) {
  return RequestError(field, fmt::format("{} must be {}", field, wanted));
}

// The format that a field or a member of structured_outputs asks for. An answer that nothing constrains because its
// constraint could not be read would be worse than none.
json::Value format_of_field(const std::string& field, std::string_view kind, const json::Value& value) {
  if (kind == "json_object") {
    if (!value.is_bool()) throw wrong_type(field, "of type bool");
    return value.as_bool(field) ? format_of("json_object", {}) : json::Value();
  }
  if (kind == "json_schema") {
    if (value.object() || value.is_bool()) return format_of("json_schema", value);
    if (!value.string()) throw wrong_type(field, "an object, or one as a string");
    try {
      return format_of("json_schema", json::parse(*value.string(), field));
    } catch (const Error& error) {
      throw RequestError(field, error.what());
    }
  }
  if (kind == "choice") {
    if (!value.array()) throw wrong_type(field, "an array of strings");
    for (const json::Value& word : *value.array())
      if (!word.string()) throw wrong_type(field, "an array of strings");
    return format_of("choice", value);
  }
  if (!value.string()) throw wrong_type(field, "a string");
  return format_of(std::string(kind), value);
}

// In the order of spec server 27: the first one counts.
struct FormatField {
  std::string_view outer, inner, kind;  // outer with inner: a member of structured_outputs
};
constexpr FormatField kFormats[] = {
    {"guided_grammar", "", "grammar"},
    {"grammar", "", "grammar"},
    {"response_format", "", ""},
    {"guided_json", "", "json_schema"},
    {"json_schema", "", "json_schema"},
    {"structured_outputs", "json", "json_schema"},
    {"structured_outputs", "json_object", "json_object"},
    {"structured_outputs", "grammar", "grammar"},
    {"guided_regex", "", "regex"},
    {"structured_outputs", "regex", "regex"},
    {"guided_choice", "", "choice"},
    {"structured_outputs", "choice", "choice"},
};

}  // namespace

void read_format(const json::Object& body, Generation& g) {
  if (const json::Value* lazy = present(body, "grammar_lazy"); lazy && lazy->as_bool("grammar_lazy"))
    throw RequestError("grammar_lazy", "grammar_lazy is not supported: a grammar holds from the first token on");
  if (const json::Value* all = present(body, "structured_outputs"))
    if (const json::Value* tag = all->get("structural_tag"); tag && !tag->is_null())
      throw RequestError("structured_outputs", "structured_outputs.structural_tag is not supported");
  for (const FormatField& field : kFormats) {
    const json::Value* value = present(body, field.outer);
    if (value && !field.inner.empty()) value = value->get(field.inner);
    if (!value || value->is_null()) continue;
    if (field.outer == "grammar" && value->string() && value->string()->empty()) continue;  // llama.cpp: none
    std::string name(field.outer);
    if (!field.inner.empty()) name += "." + std::string(field.inner);
    json::Value format =
        field.kind.empty() ? read_response_format(*value, name) : format_of_field(name, field.kind, *value);
    if (format.is_null()) continue;
    g.format = std::move(format);
    g.format_field = std::move(name);
    return;
  }
}

std::string read_keep_alive(const json::Object& body) {
  const json::Value* value = present(body, "keep_alive");
  if (!value) return "";
  return value->string() ? *value->string() : json::dump(*value);
}

ChatRequest parse_chat(const json::Object& body) {
  check_fields(body, kFields);
  ChatRequest request;
  Generation& g = request.generation;
  read_sampling(body, g);
  const auto on = [&](std::string_view key, bool fallback) {
    const json::Value* value = present(body, key);
    return value ? value->as_bool(key) : fallback;
  };
  if (const json::Value* model = present(body, "model")) request.model = *model->string();
  g.messages = *body.find("messages");
  check_messages(g.messages);
  for (json::Value& message : *g.messages.array()) {  // what was sent under either name comes back under either
    const json::Value* reasoning = message.get("reasoning");
    if (reasoning && reasoning->string() && !message.get("reasoning_content"))
      (*message.object())["reasoning_content"] = *reasoning;
  }
  request.stream = on("stream", false);
  if (const json::Value* options = present(body, "stream_options")) {
    const json::Value* usage = options->get("include_usage");
    if (usage && !usage->is_bool())
      throw RequestError("stream_options", "stream_options.include_usage must be of type bool");
    request.include_usage = usage && usage->as_bool("include_usage");
  }
  for (const char* key : {"max_tokens", "max_completion_tokens"})
    if (const json::Value* value = present(body, key)) g.max_tokens = value->as_int(key);
  if (const json::Value* stop = present(body, "stop")) g.stops = read_stops(*stop, "stop");
  if (const json::Value* n = present(body, "n")) g.n = n->as_int("n");
  if (const json::Value* best = present(body, "best_of"); best && best->as_int("best_of") > g.n)
    throw RequestError("best_of", "best_of beyond n is not supported");
  if (on("echo", false)) throw RequestError("echo", "echo is not supported");
  if (const json::Value* suffix = present(body, "suffix"); suffix && !suffix->string()->empty())
    throw RequestError("suffix", "suffix is not supported");
  const json::Value* top = present(body, "top_logprobs");
  const int64_t top_n = top ? top->as_int("top_logprobs") : -1;
  if (on("logprobs", false)) g.top_logprobs = std::max<int64_t>(top_n, 0);
  else if (top_n > 0) throw RequestError("top_logprobs", "top_logprobs needs logprobs to be true");
  if (const json::Value* format = present(body, "logprobs_format")) request.mlx_logprobs = *format->string() == "mlx";
  if (request.mlx_logprobs && request.stream)
    throw RequestError("logprobs_format", "logprobs_format mlx is for answers that are not streamed");
  g.raw_pieces = request.mlx_logprobs;
  if (const json::Value* tools = present(body, "tools"); tools && tools->array()->size() > 0) {
    check_tools(*tools);
    g.tools = *tools;
  }
  if (const json::Value* choice = present(body, "tool_choice")) g.tool_choice = read_tool_choice(*choice, g.tools);
  g.parallel_tool_calls = on("parallel_tool_calls", true);
  g.tool_grammar = on("tool_grammar", true);
  read_format(body, g);
  request.keep_alive = read_keep_alive(body);
  return request;
}

json::Object usage_json(const Usage& u) {
  json::Object o, prompt, completion;
  o["prompt_tokens"] = u.prompt;
  o["completion_tokens"] = u.completion;
  o["total_tokens"] = u.prompt + u.completion;
  prompt["cached_tokens"] = u.cached;
  completion["reasoning_tokens"] = u.reasoning;
  o["prompt_tokens_details"] = std::move(prompt);
  o["completion_tokens_details"] = std::move(completion);
  return o;
}

json::Object timings_json(const Usage& u) {
  const auto rate = [](int64_t tokens, double ms) { return ms > 0 ? 1000.0 * static_cast<double>(tokens) / ms : 0.0; };
  json::Object o;
  o["queue_ms"] = u.queue_ms;
  o["prefill_ms"] = u.prefill_ms;
  o["decode_ms"] = u.decode_ms;
  o["prefill_tps"] = rate(u.prompt - u.cached, u.prefill_ms);
  o["decode_tps"] = rate(std::max<int64_t>(u.completion - 1, 0), u.decode_ms);
  return o;
}

namespace {

// Entries as they come from the worker are OpenAI's already; mlx wants {id, logprob}, or the likeliest token merged
// with the list of the likeliest.
json::Value mlx_entry(const json::Value& entry) {
  const auto some = [](const json::Value& from, std::initializer_list<const char*> keys) {
    json::Object o;
    for (const char* key : keys) o[key] = *from.get(key);
    return o;
  };
  const json::Value* top = entry.get("top_logprobs");
  if (!top || top->array()->size() == 0) return some(entry, {"id", "logprob"});
  json::Array list;
  for (const json::Value& t : *top->array()) list.emplace_back(some(t, {"id", "token", "logprob"}));
  json::Object o = *list[0].object();
  o["top_logprobs"] = std::move(list);
  return o;
}

std::string finish_reason(const std::string& reason) { return reason == "cancelled" ? "stop" : reason; }

json::Value content_of(json::Value list) {
  json::Object o;
  o["content"] = std::move(list);
  return o;
}

constexpr const char* kReasoning[] = {"reasoning_content", "reasoning"};  // some clients look for the other one

class ChatWriter final : public StreamWriter {
 public:
  ChatWriter(bool include_usage, bool mlx, int64_t n)
      : StreamWriter(include_usage, n, random_id("chatcmpl-"), "chat.completion.chunk"), mlx_(mlx) {}

  std::string begin(const AnswerHead& head, const Usage&) override {
    head_ = head;
    std::string out;
    for (size_t i = 0; i < ended_.size(); ++i) {
      json::Object delta;
      delta["role"] = "assistant";
      delta["content"] = "";
      out += chunk(static_cast<int64_t>(i), std::move(delta), nullptr, nullptr);
    }
    return out;
  }

  std::string event(const Event& e) override {
    json::Object delta;
    switch (e.kind) {
      case Event::Kind::text:
        delta["content"] = e.text;
        return chunk(e.answer, std::move(delta), e.logprobs.is_null() ? json::Value() : content_of(e.logprobs),
                     nullptr);
      case Event::Kind::reasoning:
        for (const char* name : kReasoning) delta[name] = e.text;
        return chunk(e.answer, std::move(delta), nullptr, nullptr);
      case Event::Kind::tool_begin:
      case Event::Kind::tool_args: {
        json::Object call, function;
        call["index"] = e.index;
        if (e.kind == Event::Kind::tool_begin) {
          call["id"] = e.call;
          call["type"] = "function";
          function["name"] = e.name;
          function["arguments"] = "";
        } else {
          function["arguments"] = e.text;
        }
        call["function"] = std::move(function);
        json::Array calls;
        calls.push_back(std::move(call));
        delta["tool_calls"] = std::move(calls);
        return chunk(e.answer, std::move(delta), nullptr, nullptr);
      }
      case Event::Kind::finish: {
        Collected& one = ended_[static_cast<size_t>(e.answer)];
        one.add(e);
        ++finished_;
        const bool last = finished_ == ended_.size();
        return chunk(e.answer, std::move(delta), nullptr, finish_reason(e.reason), last && !include_usage_);
      }
      default: return "";
    }
  }

  json::Value document(const AnswerHead& head, const std::vector<Collected>& answers) override {
    head_ = head;
    json::Object o = base("chat.completion");
    json::Array choices;
    for (size_t i = 0; i < answers.size(); ++i) {
      const Collected& a = answers[i];
      json::Object choice, message;
      message["role"] = "assistant";
      message["content"] = a.text;
      if (!a.reasoning.empty())
        for (const char* name : kReasoning) message[name] = a.reasoning;
      json::Array calls;
      for (const Collected::Call& c : a.calls) {
        if (!c.whole) continue;  // the token limit cut it: half its arguments are none
        json::Object call, function;
        call["id"] = c.id;
        call["type"] = "function";
        function["name"] = c.name;
        function["arguments"] = c.arguments;
        call["function"] = std::move(function);
        calls.push_back(std::move(call));
      }
      if (calls.size() > 0) message["tool_calls"] = std::move(calls);
      choice["index"] = static_cast<int64_t>(i);
      choice["message"] = std::move(message);
      choice["logprobs"] = logprobs(a.logprobs);
      choice["finish_reason"] = finish_reason(a.reason);
      choices.push_back(std::move(choice));
    }
    o["choices"] = std::move(choices);
    put_usage(o, answers);
    return o;
  }

 private:
  json::Value logprobs(const json::Array& entries) const {
    if (entries.size() == 0) return nullptr;
    if (!mlx_) return content_of(entries);
    json::Array list;
    for (const json::Value& entry : entries) list.push_back(mlx_entry(entry));
    return content_of(std::move(list));
  }

  std::string chunk(int64_t index, json::Object delta, json::Value logprobs, json::Value finish,
                    bool usage = false) const {
    json::Object o = base(), choice;
    choice["index"] = index;
    choice["delta"] = std::move(delta);
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(finish);
    json::Array choices;
    choices.push_back(std::move(choice));
    o["choices"] = std::move(choices);
    if (usage) put_usage(o, ended_);
    else if (include_usage_) o["usage"] = nullptr;
    return net::sse_event("", json::dump(o));
  }

  bool mlx_;
};

}  // namespace

std::unique_ptr<AnswerWriter> chat_writer(const ChatRequest& request) {
  return std::make_unique<ChatWriter>(request.include_usage, request.mlx_logprobs, request.generation.n);
}

}  // namespace hearth::server::openai
