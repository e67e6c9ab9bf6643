// POST /v1/chat/completions
#include "server/dialects/openai_chat.h"
#include "server/dialects/sampling_fields.h"
#include "server/front/generate.h"
#include "server/routes/routes.h"

namespace hearth::server {

const Route kChatCompletions = {
    .method = "POST",
    .path = "/v1/chat/completions",
    .body = Body::generation,
    .summary = "an answer to a conversation, in OpenAI's shape",
    .fields = [] { return std::vector{openai::chat_fields(), sampling_fields()}; },
    .handle =
        [](Services& services, Call call) {
          openai::ChatRequest chat = openai::parse_chat(call.body());
          GenerationCall run;
          run.writer = openai::chat_writer(chat);
          run.model = std::move(chat.model);
          run.stream = chat.stream;
          run.keep_alive = std::move(chat.keep_alive);
          run.generation = std::move(chat.generation);
          generate(services, std::move(run), std::move(call));
        },
};

}  // namespace hearth::server
