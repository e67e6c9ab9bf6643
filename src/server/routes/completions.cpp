// POST /v1/completions
#include "server/dialects/openai_completions.h"
#include "server/dialects/sampling_fields.h"
#include "server/front/generate.h"
#include "server/routes/routes.h"

namespace hearth::server {

const Route kCompletions = {
    .method = "POST",
    .path = "/v1/completions",
    .body = Body::generation,
    .summary = "a raw text continued, without a chat template",
    .fields = [] { return std::vector{openai::completion_fields(), sampling_fields()}; },
    .handle =
        [](Services& services, Call call) {
          openai::CompletionRequest completion = openai::parse_completion(call.body());
          GenerationCall run;
          run.writer = openai::completion_writer(completion);
          run.model = std::move(completion.model);
          run.stream = completion.stream;
          run.keep_alive = std::move(completion.keep_alive);
          run.generation = std::move(completion.generation);
          generate(services, std::move(run), std::move(call));
        },
};

}  // namespace hearth::server
