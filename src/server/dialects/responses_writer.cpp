// The answer as output items: reasoning, messages, function calls. A document is what the same events would have
// streamed, so one machine makes both.
#include "server/dialects/responses.h"

namespace hearth::server::responses {
namespace {

json::Object usage_json(const Usage& usage) {
  json::Object o, input, output;
  o["input_tokens"] = usage.prompt;
  input["cached_tokens"] = usage.cached;
  input["cache_write_tokens"] = 0;
  o["input_tokens_details"] = std::move(input);
  o["output_tokens"] = usage.completion;
  output["reasoning_tokens"] = usage.reasoning;
  o["output_tokens_details"] = std::move(output);
  o["total_tokens"] = usage.prompt + usage.completion;
  return o;
}

// What a call of a custom tool says: its one argument, which the model gave as JSON.
std::string input_of(const std::string& arguments) {
  try {
    const json::Value call = json::parse(arguments, "the arguments of a call");
    if (const json::Value* input = call.get("input"); input && input->string()) return *input->string();
  } catch (const Error&) {
    return arguments;
  }
  return arguments;
}

// An item under way or done.
struct Item {
  Event::Kind kind{};          // text, reasoning, tool_begin
  std::string id, call, text;  // text: also a call's arguments, or the input of a custom tool
  ToolOrigin tool;             // of a call
  json::Array logprobs;
  std::string_view status = "in_progress";

  bool listed() const { return kind != Event::Kind::tool_begin || status == "completed"; }  // a cut call is none

  json::Object part() const {
    json::Object o;
    o["type"] = kind == Event::Kind::reasoning ? "reasoning_text" : "output_text";
    o["text"] = text;
    if (kind == Event::Kind::reasoning) return o;
    o["annotations"] = json::Array();
    o["logprobs"] = logprobs;
    return o;
  }

  json::Object json() const {
    json::Object o;
    json::Array content;
    if (status != "in_progress") content.push_back(part());
    o["id"] = id;
    switch (kind) {
      case Event::Kind::tool_begin:
        o["type"] = tool.custom ? "custom_tool_call" : "function_call";
        o["status"] = status;
        o["call_id"] = call;
        if (!tool.space.empty()) o["namespace"] = tool.space;
        o["name"] = tool.name;
        o[tool.custom ? "input" : "arguments"] = tool.custom && status == "in_progress" ? "" : text;
        break;
      case Event::Kind::reasoning:
        o["type"] = "reasoning";
        o["status"] = status;
        o["summary"] = json::Array();
        o["content"] = std::move(content);
        break;
      default:
        o["type"] = "message";
        o["status"] = status;
        o["role"] = "assistant";
        o["content"] = std::move(content);
        break;
    }
    return o;
  }
};

class ResponsesWriter final : public AnswerWriter {
 public:
  explicit ResponsesWriter(const ResponsesRequest& request)
      : echo_(request.echo),
        instructions_(request.instructions ? json::Value(*request.instructions) : json::Value()),
        previous_(request.previous_response_id.empty() ? json::Value() : json::Value(request.previous_response_id)),
        origins_(request.origins),
        parallel_(request.generation.parallel_tool_calls),
        store_(request.store),
        id_(random_id("resp_")) {}

  std::string begin(const AnswerHead& head, const Usage&) override {
    head_ = head;
    std::string out = state_event("response.created");
    return out += state_event("response.in_progress");
  }

  std::string event(const Event& e) override {
    switch (e.kind) {
      case Event::Kind::text:
      case Event::Kind::reasoning: return run(e);
      case Event::Kind::tool_begin: return next(e);
      case Event::Kind::tool_args: return arguments(e);
      case Event::Kind::tool_end: return close();
      case Event::Kind::finish:
        usage_ = e.usage;
        status_ = e.reason == "length" ? "incomplete" : "completed";
        return finish_items();
      case Event::Kind::admitted:
      case Event::Kind::error: break;
    }
    return "";
  }

  std::string end() override { return state_event("response." + std::string(status_)); }

  // Told twice, as by the official service: libraries raise the first event, agents read the second.
  std::string failure(const Problem& problem, std::string_view request_id) override {
    status_ = "failed";
    json::Object event = *error_json(Dialect::openai, problem, request_id).object(), error;
    error["code"] = problem.code.empty() ? "server_error" : problem.code;
    error["message"] = problem.message;
    for (const auto& [key, value] : error) event[key] = value;
    event["param"] = problem.param.empty() ? json::Value() : json::Value(problem.param);
    error_ = std::move(error);
    std::string out = send("error", std::move(event));
    return out += state_event("response.failed");
  }

  // An event, as the official service has it: Codex gives a stream up after five minutes without one, and comments are
  // none. Its number is that of response.in_progress, so that the others' have no gap.
  std::string ping() override {
    json::Object o;
    o["sequence_number"] = 1;
    return named_event("keepalive", std::move(o));
  }

  json::Value document(const AnswerHead& head, const std::vector<Collected>& answers) override {
    head_ = head;
    if (status_ == "in_progress")
      for (const Event& e : answers.front().events()) event(e);
    return response();
  }

 private:
  ToolOrigin origin_of(const std::string& shown) const {
    const auto found = origins_.find(shown);
    return found != origins_.end() ? found->second : ToolOrigin{.space = {}, .name = shown};
  }

  bool is_open() const { return !items_.empty() && items_.back().status == "in_progress"; }

  std::string send(std::string_view name, json::Object body) {
    body["sequence_number"] = sequence_++;
    return named_event(name, std::move(body));
  }
  std::string state_event(std::string_view name) {
    json::Object o;
    o["response"] = response();
    return send(name, std::move(o));
  }
  // About the last item; about its one part too, if it has one.
  json::Object about_item(bool about_part) const {
    json::Object o;
    o["item_id"] = items_.back().id;
    o["output_index"] = static_cast<int64_t>(items_.size()) - 1;
    if (about_part) o["content_index"] = 0;
    return o;
  }
  std::string item_event(std::string_view name) {
    json::Object o;
    o["output_index"] = static_cast<int64_t>(items_.size()) - 1;
    o["item"] = items_.back().json();
    return send(name, std::move(o));
  }
  std::string part_event(std::string_view name) {
    json::Object o = about_item(true);
    o["part"] = items_.back().part();
    return send(name, std::move(o));
  }

  // Each piece has its number when it is made: they are made one after the other, not as operands of one sum.
  std::string next(const Event& e) {
    std::string out = close();
    return out += open(e);
  }

  std::string open(const Event& e) {
    Item item{.kind = e.kind};
    switch (e.kind) {
      case Event::Kind::tool_begin:
        item.tool = origin_of(e.name);
        item.id = random_id(item.tool.custom ? "ctc_" : "fc_");
        item.call = e.call;
        break;
      case Event::Kind::reasoning: item.id = random_id("rs_"); break;
      default: item.id = random_id("msg_"); break;
    }
    items_.push_back(std::move(item));
    std::string out = item_event("response.output_item.added");
    if (e.kind != Event::Kind::tool_begin) out += part_event("response.content_part.added");
    return out;
  }

  // Text or reasoning: the open item grows if it is of this kind.
  std::string run(const Event& e) {
    const json::Array* entries = e.logprobs.array();
    if (e.text.empty() && (!entries || entries->size() == 0)) return "";
    std::string out;
    if (!is_open() || items_.back().kind != e.kind) out = next(e);
    items_.back().text += e.text;
    json::Object o = about_item(true);
    o["delta"] = e.text;
    if (e.kind == Event::Kind::reasoning) return out + send("response.reasoning_text.delta", std::move(o));
    o["logprobs"] = entries ? *entries : json::Array();
    if (entries)
      for (const json::Value& entry : *entries) items_.back().logprobs.push_back(entry);
    return out + send("response.output_text.delta", std::move(o));
  }

  std::string arguments(const Event& e) {
    if (e.text.empty() || !is_open()) return "";
    items_.back().text += e.text;
    if (items_.back().tool.custom) return "";  // the JSON around it has to end first
    json::Object o = about_item(false);
    o["delta"] = e.text;
    return send("response.function_call_arguments.delta", std::move(o));
  }

  // All of a custom call's input, at its end. A cut one has none.
  std::string custom_input(Item& item, std::string_view status) {
    item.text = status == "completed" ? input_of(item.text) : "";
    json::Object delta = about_item(false), done = delta;
    delta["delta"] = done["input"] = item.text;
    std::string out;
    if (!item.text.empty()) out = send("response.custom_tool_call_input.delta", std::move(delta));
    return out += send("response.custom_tool_call_input.done", std::move(done));
  }

  std::string close(std::string_view status = "completed") {
    if (!is_open()) return "";
    Item& item = items_.back();
    if (item.tool.custom) {
      std::string out = custom_input(item, status);
      item.status = status;
      return out += item_event("response.output_item.done");
    }
    item.status = status;
    const bool call = item.kind == Event::Kind::tool_begin;
    json::Object done = about_item(!call);
    done[call ? "arguments" : "text"] = item.text;
    if (item.kind == Event::Kind::text) done["logprobs"] = item.logprobs;
    std::string out = send(call                                  ? "response.function_call_arguments.done"
                           : item.kind == Event::Kind::reasoning ? "response.reasoning_text.done"
                                                                 : "response.output_text.done",
                           std::move(done));
    if (!call) out += part_event("response.content_part.done");
    return out + item_event("response.output_item.done");
  }

  // An answer has an item at least: a message, be it empty.
  std::string finish_items() {
    std::string out;
    if (items_.empty()) out = open({.kind = Event::Kind::text});
    return out += close(status_);
  }

  json::Object response() const {
    const bool ended = status_ != "in_progress";
    const auto echo = [&](std::string_view key, json::Value fallback) {
      const json::Value* value = echo_.find(key);
      return value ? *value : std::move(fallback);
    };
    json::Object o, details, format, text, reasoning;
    json::Array output;
    for (const Item& item : items_)
      if (ended && item.listed()) output.push_back(item.json());
    format["type"] = "text";
    text["format"] = std::move(format);
    reasoning["effort"] = nullptr;
    reasoning["summary"] = nullptr;
    o["id"] = id_;
    o["object"] = "response";
    o["created_at"] = head_.created;
    o["status"] = status_;
    o["background"] = false;
    o["error"] = error_;
    details["reason"] = "max_output_tokens";
    o["incomplete_details"] = status_ == "incomplete" ? json::Value(std::move(details)) : json::Value();
    o["instructions"] = instructions_;
    o["max_output_tokens"] = echo("max_output_tokens", nullptr);
    o["model"] = head_.model;
    o["output"] = std::move(output);
    o["parallel_tool_calls"] = parallel_;
    o["previous_response_id"] = previous_;
    o["reasoning"] = echo("reasoning", std::move(reasoning));
    o["store"] = store_;
    o["temperature"] = echo("temperature", nullptr);
    o["text"] = echo("text", std::move(text));
    o["tool_choice"] = echo("tool_choice", "auto");
    o["tools"] = echo("tools", json::Array());
    o["top_logprobs"] = echo("top_logprobs", 0);
    o["top_p"] = echo("top_p", nullptr);
    o["truncation"] = "disabled";
    o["usage"] = ended && status_ != "failed" ? json::Value(usage_json(usage_)) : json::Value();
    o["metadata"] = echo("metadata", json::Object());
    return o;
  }

  const json::Object echo_;
  const json::Value instructions_, previous_;
  const ToolOrigins origins_;
  const bool parallel_, store_;
  const std::string id_;
  AnswerHead head_;
  std::vector<Item> items_;
  std::string_view status_ = "in_progress";
  json::Value error_;
  Usage usage_;
  int64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<AnswerWriter> responses_writer(const ResponsesRequest& request) {
  return std::make_unique<ResponsesWriter>(request);
}

}  // namespace hearth::server::responses
