// POST /v1/messages
#include "server/dialects/anthropic.h"
#include "server/dialects/sampling_fields.h"
#include "server/front/generate.h"
#include "server/http/request_limits.h"
#include "server/routes/routes.h"

namespace hearth::server {

const Route kMessages = {
    .method = "POST",
    .path = "/v1/messages",
    .body = Body::generation,
    .dialect = Dialect::anthropic,
    .summary = "an answer to a conversation, in Anthropic's shape",
    .fields =
        [] { return std::vector{anthropic::conversation_fields(), anthropic::answer_fields(), sampling_fields()}; },
    .handle =
        [](Services& services, Call call) {
          anthropic::MessagesRequest messages = anthropic::parse_messages(call.body());
          check_expanded_limits(messages.generation, "messages", *call.limits);
          GenerationCall run;
          run.writer = anthropic::messages_writer();
          run.model = std::move(messages.model);
          run.stream = messages.stream;
          run.keep_alive = std::move(messages.keep_alive);
          run.generation = std::move(messages.generation);
          generate(services, std::move(run), call);
        },
};

}  // namespace hearth::server
