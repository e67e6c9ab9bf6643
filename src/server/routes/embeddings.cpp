// POST /v1/embeddings (spec server 53)
#include "server/routes/routes.h"
#include "server/routes/worker_calls.h"

namespace hearth::server {
namespace {

constexpr int64_t kTextsMax = 2048;

constexpr Field kFields[] = {
    {"model", FieldType::string, "a name of /v1/models: an embedding model", 0, 1024},
    {"input", FieldType::string_or_array, "a text, or texts", 1, kTextsMax, {}, true},
    {"instruction", FieldType::string, "what the vectors are for, where the model knows instructions", 0, 64 << 10},
    {"encoding_format", FieldType::string, "float or base64", -kUnbounded, kUnbounded, "float|base64"},
    {"dimensions", FieldType::integer, "the first so many numbers, of length 1 again", 1, 1 << 20},
    {"user", FieldType::string, "ignored"},
};

// The numbers are floats, and JSON's reader may be off by a last bit of the doubles that they are read as.
json::Array as_floats(const json::Array& numbers) {
  json::Array list;
  for (const json::Value& number : numbers) list.emplace_back(double{static_cast<float>(number.as_double("vectors"))});
  return list;
}

void embeddings(Services& services, Call call) {
  const json::Object body = call.body();
  check_fields(body, kFields);
  json::Object ask;
  const json::Value& input = *body.find("input");
  if (input.string()) {
    json::Array one;
    one.push_back(input);
    ask["input"] = std::move(one);
  } else {
    ask["input"] = input;
  }
  for (const char* key : {"instruction", "encoding_format", "dimensions"})
    if (const json::Value* value = body.find(key); value && !value->is_null()) ask[key] = *value;
  const json::Value* model = body.find("model");
  const std::string name = model && model->string() ? *model->string() : "";
  const ModelChoice choice = services.models.choose(name);
  if (!choice.adapter.empty())
    throw RequestError("model", fmt::format("model: {} names an adapter, and embedding models take none", name));
  ask_worker(services, std::move(call), name, FrameKind::embed, std::move(ask),
             [id = choice.id](const json::Value& reply) {
               json::Array data;
               for (const json::Value& vector : *reply.get("vectors")->array()) {
                 json::Object one;
                 one["object"] = "embedding";
                 one["index"] = static_cast<int64_t>(data.size());
                 one["embedding"] = vector.array() ? json::Value(as_floats(*vector.array())) : vector;
                 data.push_back(std::move(one));
               }
               json::Object o, usage;
               o["object"] = "list";
               o["data"] = std::move(data);
               o["model"] = id;
               usage["prompt_tokens"] = *reply.get("tokens");
               usage["total_tokens"] = *reply.get("tokens");
               o["usage"] = std::move(usage);
               return o;
             });
}

}  // namespace

const Route kEmbeddings = {.method = "POST",
                           .path = "/v1/embeddings",
                           .body = Body::generation,
                           .summary = "vectors of texts",
                           .fields = [] { return std::vector<std::span<const Field>>{kFields}; },
                           .handle = embeddings};

}  // namespace hearth::server
