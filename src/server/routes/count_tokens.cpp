// POST /v1/messages/count_tokens: what the same body costs as a request, from the same render.
#include "server/dialects/anthropic.h"
#include "server/dialects/sampling_fields.h"
#include "server/http/request_limits.h"
#include "server/routes/routes.h"
#include "server/routes/worker_calls.h"

namespace hearth::server {

const Route kCountTokens = {
    .method = "POST",
    .path = "/v1/messages/count_tokens",
    .body = Body::generation,
    .dialect = Dialect::anthropic,
    .summary = "the tokens of a conversation's prompt",
    .fields = [] { return std::vector{anthropic::conversation_fields(), sampling_fields()}; },
    .handle =
        [](Services& services, Call call) {
          anthropic::MessagesRequest messages = anthropic::parse_count(call.body());
          check_expanded_limits(messages.generation, "messages", *call.limits);
          messages.generation.owner = call.owner;
          json::Value wire = to_json(messages.generation);
          ask_worker(services, std::move(call), messages.model, FrameKind::render, std::move(*wire.object()),
                     [](const json::Value& reply) {
                       json::Object o;
                       o["input_tokens"] = *reply.get("token_count");
                       return o;
                     });
        },
};

}  // namespace hearth::server
