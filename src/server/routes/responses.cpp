// POST /v1/responses; GET, DELETE /v1/responses/{id}
#include "server/dialects/responses.h"
#include "server/dialects/sampling_fields.h"
#include "server/front/generate.h"
#include "server/front/response_store.h"
#include "server/http/request_limits.h"
#include "server/routes/routes.h"

namespace hearth::server {
namespace {

void refuse_unknown(Services& services, const Call& call, std::string message, std::string param, std::string code) {
  services.counters.count(std::string(call.route), 404);
  const Problem problem = {.status = 404,
                           .type = "invalid_request_error",
                           .message = std::move(message),
                           .param = std::move(param),
                           .code = std::move(code)};
  call.exchange->send(error_response(Dialect::openai, problem, call.request_id));
}

void refuse_unknown(Services& services, const Call& call) {
  refuse_unknown(services, call, fmt::format("there is no stored response {}", call.parameter), "",
                 "response_not_found");
}

void create(Services& services, Call call) {
  responses::ResponsesRequest request = responses::parse_responses(call.body());
  responses::Past past;
  if (!request.previous_response_id.empty()) {
    try {
      past = services.responses.past(call.owner, request.previous_response_id);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
      return refuse_unknown(services, call, error.what(), "previous_response_id", "previous_response_not_found");
    }
  }
  responses::converse(request, std::move(past));
  check_expanded_limits(request.generation, "input", *call.limits);
  GenerationCall run;
  run.writer = responses::responses_writer(request);
  run.model = std::move(request.model);
  run.stream = request.stream;
  run.keep_alive = std::move(request.keep_alive);
  run.generation = std::move(request.generation);
  if (request.store)
    run.keep = [&store = services.responses, owner = call.owner, items = std::move(request.items),
                instructions = std::move(request.instructions)](const json::Value& document) {
      store.put(owner, {.document = document, .items = items, .instructions = instructions});
    };
  generate(services, std::move(run), call);
}

void get(Services& services, Call call) {
  const std::optional<json::Value> found = services.responses.find(call.owner, call.parameter);
  if (!found) return refuse_unknown(services, call);
  call.answer(200, *found);
}

void erase(Services& services, Call call) {
  if (!services.responses.erase(call.owner, call.parameter)) return refuse_unknown(services, call);
  json::Object o;
  o["id"] = call.parameter;
  o["object"] = "response";
  o["deleted"] = true;
  call.answer(200, o);
}

}  // namespace

const Route kResponses = {
    .method = "POST",
    .path = "/v1/responses",
    .body = Body::generation,
    .summary = "an answer to a conversation, in the shape of OpenAI's responses",
    .fields = [] { return std::vector{responses::response_fields(), sampling_fields()}; },
    .handle = create,
};
const Route kResponse = {.method = "GET", .path = "/v1/responses/{id}", .summary = "a stored response", .handle = get};
const Route kDeleteResponse = {
    .method = "DELETE", .path = "/v1/responses/{id}", .summary = "forgets a stored response", .handle = erase};

}  // namespace hearth::server
