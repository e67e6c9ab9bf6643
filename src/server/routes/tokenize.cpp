// POST /v1/tokenize, /tokenize, /v1/detokenize, /detokenize, /apply-template
#include "server/dialects/openai_chat.h"
#include "server/dialects/sampling_fields.h"
#include "server/limits.h"
#include "server/routes/routes.h"
#include "server/routes/worker_calls.h"

namespace hearth::server {
namespace {

constexpr Field kTokenizeFields[] = {
    {"model", FieldType::string, "a name of /v1/models", 0, 1024},
    {"content", FieldType::string, "a text; or messages"},
    {"messages", FieldType::array, "a conversation, rendered by the model's template", 1, most::kMessages},
    {"tools", FieldType::array, "functions, for the template", 0, 256},
    {"add_special", FieldType::boolean, "what the model's file puts around a text [true]"},
    {"with_pieces", FieldType::boolean, "each id with its text"},
    {"chat_template_kwargs", FieldType::object, "further variables of the template"},
};
constexpr Field kDetokenizeFields[] = {
    {"model", FieldType::string, "a name of /v1/models", 0, 1024},
    {"tokens", FieldType::array, "ids", 0, 1 << 24, {}, true},
};

std::string model_of(const json::Object& body) {
  const json::Value* model = body.find("model");
  return model && model->string() ? *model->string() : "";
}

json::Object rendered(const json::Object& body) {
  Generation g;
  g.messages = *body.find("messages");
  openai::check_messages(g.messages);
  if (const json::Value* tools = body.find("tools"); tools && tools->array() && tools->array()->size() > 0) {
    openai::check_tools(*tools);
    g.tools = *tools;
  }
  json::Object rest;
  if (const json::Value* kwargs = body.find("chat_template_kwargs")) rest["chat_template_kwargs"] = *kwargs;
  read_sampling(rest, g);
  json::Value wire = to_json(g);
  return std::move(*wire.object());
}

void tokenize(Services& services, Call call) {
  const json::Object body = call.body();
  check_fields(body, kTokenizeFields);
  const json::Value* content = body.find("content");
  const json::Value* messages = body.find("messages");
  const bool has_content = content && content->string(), has_messages = messages && messages->array();
  if (has_content == has_messages) throw RequestError("content", "tokenize takes content or messages, one of them");
  json::Object ask = has_messages ? rendered(body) : json::Object();
  for (const char* key : {"content", "add_special", "with_pieces"})
    if (const json::Value* value = body.find(key); value && !value->is_null()) ask[key] = *value;
  ask_worker(services, std::move(call), model_of(body), FrameKind::tokenize, std::move(ask),
             [](const json::Value& reply) {
               json::Object o;
               o["tokens"] = *reply.get("tokens");
               o["count"] = *reply.get("token_count");
               return o;
             });
}

void detokenize(Services& services, Call call) {
  const json::Object body = call.body();
  check_fields(body, kDetokenizeFields);
  json::Object ask;
  ask["tokens"] = *body.find("tokens");
  ask_worker(services, std::move(call), model_of(body), FrameKind::detokenize, std::move(ask),
             [](const json::Value& reply) {
               json::Object o;
               o["content"] = *reply.get("content");
               return o;
             });
}

void apply_template(Services& services, Call call) {
  const json::Object body = call.body();
  check_fields(body, kTokenizeFields);
  if (const json::Value* messages = body.find("messages"); !messages || !messages->array())
    throw RequestError("messages", "messages is required");
  ask_worker(services, std::move(call), model_of(body), FrameKind::render, rendered(body),
             [](const json::Value& reply) {
               json::Object o;
               o["prompt"] = *reply.get("prompt");
               o["token_count"] = *reply.get("token_count");
               return o;
             });
}

std::vector<std::span<const Field>> tokenize_fields() { return {kTokenizeFields}; }
std::vector<std::span<const Field>> detokenize_fields() { return {kDetokenizeFields}; }

constexpr Route post(std::string_view path, std::string_view summary, std::vector<std::span<const Field>> (*fields)(),
                     void (*handle)(Services&, Call)) {
  return {
      .method = "POST", .path = path, .body = Body::generation, .summary = summary, .fields = fields, .handle = handle};
}

}  // namespace

const Route kTokenize = post("/tokenize", "ids of a text or a conversation", tokenize_fields, tokenize);
const Route kTokenizeV1 = post("/v1/tokenize", "ids of a text or a conversation", tokenize_fields, tokenize);
const Route kDetokenize = post("/detokenize", "the text of ids", detokenize_fields, detokenize);
const Route kDetokenizeV1 = post("/v1/detokenize", "the text of ids", detokenize_fields, detokenize);
const Route kApplyTemplate =
    post("/apply-template", "a conversation as the model's template writes it", tokenize_fields, apply_template);

}  // namespace hearth::server
