#include "server/dialects/chat_frames.h"

#include <algorithm>

#include "base/utf8.h"
#include "server/dialects/openai_chat.h"
#include "server/dialects/sampling_fields.h"
#include "server/http/read_json.h"

namespace hearth::server::frames {
namespace {

constexpr size_t kIdBytes = 64;

constexpr Field kPrompt[] = {
    {"text", FieldType::string, "what is said", 1, kFrameBytes, {}, true},
    {"images", FieldType::array, "not supported: the models read text", 0, 32},
    {"parent", FieldType::string, "the message that it follows [the last one]", 1, kIdBytes},
};
constexpr Field kText[] = {{"text", FieldType::string, "what is said", 1, kFrameBytes, {}, true}};
constexpr Field kMessage[] = {{"message", FieldType::string, "a message's id", 1, kIdBytes, {}, true}};
constexpr Field kEdit[] = {
    {"message", FieldType::string, "a message of the user", 1, kIdBytes, {}, true},
    {"text", FieldType::string, "what stands there instead", 1, kFrameBytes, {}, true},
};
constexpr Field kAuth[] = {{"ticket", FieldType::string, "of /api/ws-ticket", 1, 128, {}, true}};
constexpr Field kUnqueue[] = {{"index", FieldType::integer, "in follow_up, from 0", 0, 1e6, {}, true}};
constexpr Field kResume[] = {
    {"conversation", FieldType::string, "of ready or history", 1, kIdBytes, {}, true},
    {"after_seq", FieldType::integer, "the last frame that came", 0, 9e15, {}, true},
};
constexpr Field kSetModel[] = {
    {"model", FieldType::string, "a name of /v1/models; empty: the default", 0, 1024, {}, true}};
constexpr Field kSetThinking[] = {{"effort", FieldType::string, "none turns thinking off", -kUnbounded, kUnbounded,
                                   "none|minimal|low|medium|high|xhigh", true}};
constexpr Field kSetAdapter[] = {{"spec", FieldType::string, "an adapter, a stack a+b, or none", 0, 1024, {}, true}};
constexpr Field kSetSystem[] = {
    {"text", FieldType::string, "the system message; empty: none", 0, kFrameBytes, {}, true}};
constexpr Field kSetSampling[] = {
    {"max_tokens", FieldType::integer, "tokens of the answer at most", 0, 1e9},
    {"stop", FieldType::string_or_array, "up to 16 strings that end the answer"},
};

struct Row {
  std::string_view type;
  std::span<const Field> fields{};
  Standing standing = Standing::taken;
};
constexpr Row kRows[] = {
    {"prompt", kPrompt},
    {"regenerate", kMessage},
    {"edit", kEdit},
    {"abort"},
    {"queue", kText},
    {"unqueue", kUnqueue},
    {"set_model", kSetModel},
    {"set_thinking", kSetThinking},
    {"set_adapter", kSetAdapter},
    {"set_sampling", kSetSampling},
    {"set_system", kSetSystem},
    {"new_session"},
    {"resume", kResume},
    {"ping"},
    {"auth", kAuth},
    {"steer", {}, Standing::not_yet},
    {"approval", {}, Standing::not_yet},
    {"set_tools", {}, Standing::not_yet},
    {"list_sessions", {}, Standing::not_yet},
    {"open_session", {}, Standing::not_yet},
    {"fork_session", {}, Standing::not_yet},
    {"rename_session", {}, Standing::not_yet},
    {"delete_session", {}, Standing::not_yet},
    {"undo_delete", {}, Standing::not_yet},
    {"delete_message", {}, Standing::not_yet},
};

json::Object frame(std::string_view type) {
  json::Object o;
  o["type"] = type;
  return o;
}

bool is_id(const json::Value& value) {
  if (const std::string* text = value.string()) return !text->empty() && text->size() <= kIdBytes;
  return value.is_int();
}

std::string line(json::Object o) { return json::dump(json::Value(std::move(o))) + '\n'; }

class TurnWriter final : public AnswerWriter {
 public:
  explicit TurnWriter(std::shared_ptr<Turn> turn) : turn_(std::move(turn)) {}

  std::string begin(const AnswerHead& head, const Usage& admitted) override {
    turn_->model = head.model;
    turn_->admitted = admitted;
    return "";
  }

  std::string event(const Event& e) override {
    turn_->answer.add(e);
    turn_->tokens += e.tokens;
    if (e.kind != Event::Kind::text && e.kind != Event::Kind::reasoning) return "";  // it has no tools: no calls
    json::Object o = frame(e.kind == Event::Kind::text ? "text_delta" : "thinking_delta");
    o["turn"] = turn_->number;
    o["text"] = e.text;
    return line(std::move(o));
  }

  std::string end() override { return ""; }

  std::string failure(const Problem& problem, std::string_view) override {
    turn_->answer.reason = "error";
    return error({}, problem, turn_->number) + '\n';
  }

  std::string ping() override { return ""; }  // the socket has its own
  json::Value document(const AnswerHead&, const std::vector<Collected>&) override { return {}; }

 private:
  std::shared_ptr<Turn> turn_;
};

}  // namespace

ClientFrame read_frame(std::string_view text, const Limits& limits) {
  ClientFrame out;
  out.body = read_json_object(text, "the frame", limits);
  if (const json::Value* id = present(out.body, "id"); id && is_id(*id)) out.id = *id;
  if (const json::Value* type = present(out.body, "type"); type && type->string()) out.type = *type->string();
  return out;
}

std::vector<std::span<const Field>> sampling_tables() { return {sampling_fields(), kSetSampling}; }

Standing check(const ClientFrame& frame) {
  if (frame.id.is_null())
    throw RequestError("id", fmt::format("id must be a string of 1 to {} bytes or a whole number", kIdBytes));
  const auto* row = std::ranges::find(kRows, std::string_view(frame.type), &Row::type);
  if (row == std::end(kRows))
    throw RequestError("type", fmt::format("there is no frame of type {}", utf8_cut(frame.type, kIdBytes)));
  check_fields(frame.body, row->fields);
  if (frame.type == "set_sampling") check_fields(frame.body, sampling_fields());
  if (const json::Value* images = frame.type == "prompt" ? present(frame.body, "images") : nullptr)
    if (images->array()->size() > 0) throw RequestError("images", "images: the model reads text only");
  return row->standing;
}

std::string ack(const json::Value& id, bool repeated) {
  json::Object o = frame("ack");
  o["id"] = id;
  if (repeated) o["repeated"] = true;
  return json::dump(o);
}

std::string error(const json::Value& id, const Problem& problem, int64_t turn) {
  json::Object o = frame("error");
  o["id"] = id;
  if (turn > 0) o["turn"] = turn;
  o["kind"] = problem.kind.empty() ? std::string(name_of(ErrorKind::invalid_argument)) : problem.kind;
  o["sentence"] = problem.message;
  o["retry"] = problem.retry_after_s > 0 ? json::Value(problem.retry_after_s) : json::Value();
  if (!problem.param.empty()) o["param"] = problem.param;
  if (!problem.code.empty()) o["code"] = problem.code;
  return json::dump(o);
}

std::string not_yet(const ClientFrame& client) {
  json::Object o = frame("error");
  o["id"] = client.id;
  o["kind"] = "not_supported";
  o["sentence"] = fmt::format("this server does not take {} frames yet", client.type);
  o["retry"] = nullptr;
  o["frame"] = client.type;
  return json::dump(o);
}

std::string ready(const ModelView* model, std::string_view conversation, const std::string& build) {
  json::Object o = frame("ready");
  o["conversation"] = conversation;
  o["model"] = model ? json::Value(model->id) : json::Value();
  for (const auto& [name, fact] :
       {std::pair("vision", "vision"), std::pair("thinking", "reasoning"),
        std::pair("context_window", "context_window"), std::pair("sampling_defaults", "sampling_defaults")}) {
    const json::Value* value = model ? model->facts.find(fact) : nullptr;
    o[name] = value ? *value : json::Value();
  }
  o["tools"] = json::Array();
  o["build"] = build;
  return json::dump(o);
}

std::string history(std::string_view conversation, json::Array messages, const std::string& head) {
  json::Object o = frame("history");
  o["conversation"] = conversation;
  o["messages"] = std::move(messages);
  o["head"] = head.empty() ? json::Value() : json::Value(head);
  return json::dump(o);
}

std::string queue_update(const std::vector<std::string>& follow_up) {
  json::Object o = frame("queue_update");
  json::Array list;
  for (const std::string& text : follow_up) list.emplace_back(text);
  o["steering"] = json::Array();
  o["follow_up"] = std::move(list);
  return json::dump(o);
}

std::string context(int64_t tokens, const json::Value& window) {
  json::Object o = frame("context");
  const double size = window.is_number() ? window.as_double("context_window") : 0;
  o["tokens"] = tokens;
  o["contextWindow"] = window;
  o["percent"] = size > 0 ? json::Value(100.0 * static_cast<double>(tokens) / size) : json::Value();
  return json::dump(o);
}

Usage Turn::usage() const {
  if (!answer.reason.empty()) return answer.usage;
  Usage usage = admitted;
  usage.completion = tokens;
  return usage;
}

std::string turn_start(const Turn& turn) {
  json::Object o = frame("turn_start");
  o["turn"] = turn.number;
  o["message"] = turn.message;
  o["parent"] = turn.parent;
  return json::dump(o);
}

std::string turn_end(const Turn& turn, std::string_view reason) {
  json::Object o = frame("turn_end");
  o["turn"] = turn.number;
  o["message"] = turn.message;
  o["model"] = turn.model;
  o["reason"] = reason;
  o["usage"] = openai::usage_json(turn.usage());
  o["timings"] = openai::timings_json(turn.usage());
  o["max_tokens"] = turn.admitted.max_tokens;
  return json::dump(o);
}

std::unique_ptr<AnswerWriter> turn_writer(std::shared_ptr<Turn> turn) {
  return std::make_unique<TurnWriter>(std::move(turn));
}

}  // namespace hearth::server::frames
