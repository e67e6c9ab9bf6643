// POST /signal
#include "server/dialects/lab.h"
#include "server/front/generate.h"
#include "server/routes/routes.h"

namespace hearth::server {

const Route kSignal = {
    .method = "POST",
    .path = "/signal",
    .body = Body::generation,
    .summary = "the distribution of the token behind a prompt, as a histogram",
    .fields = [] { return std::vector{lab::prompt_fields()}; },
    .handle =
        [](Services& services, Call call) {
          lab::LabRequest request = lab::parse_signal(call.body());
          generate(services,
                   {.model = std::move(request.model),
                    .generation = std::move(request.generation),
                    .writer = lab::signal_writer(),
                    .keep_alive = std::move(request.keep_alive)},
                   std::move(call));
        },
};

}  // namespace hearth::server
