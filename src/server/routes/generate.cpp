// POST /generate
#include "server/dialects/lab.h"
#include "server/front/generate.h"
#include "server/routes/routes.h"

namespace hearth::server {

const Route kGenerate = {
    .method = "POST",
    .path = "/generate",
    .body = Body::generation,
    .summary = "samples that a transfer curve draws",
    .fields = [] { return std::vector{lab::prompt_fields(), lab::generate_fields()}; },
    .handle =
        [](Services& services, Call call) {
          lab::LabRequest request = lab::parse_generate(call.body());
          std::unique_ptr<AnswerWriter> writer = lab::samples_writer(request);
          generate(services,
                   {.model = std::move(request.model),
                    .generation = std::move(request.generation),
                    .writer = std::move(writer),
                    .keep_alive = std::move(request.keep_alive)},
                   std::move(call));
        },
};

}  // namespace hearth::server
