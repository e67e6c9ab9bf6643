// POST /api/ws-ticket: a ticket for the first frame of /ws/chat, where no header can carry the credential.
#include "server/routes/routes.h"

namespace hearth::server {

const Route kSocketTicket = {
    .method = "POST",
    .path = "/api/ws-ticket",
    .access = Access::control,
    .body = Body::control,
    .summary = "a ticket for one WebSocket, good for 30 s",
    .handle =
        [](Services& services, Call call) {
          call.body();  // an object; it asks for nothing yet
          json::Object o;
          o["ticket"] = services.tickets.issue({services.auth.holder(call.request.head), call.owner});
          o["expires_ms"] = static_cast<int64_t>(std::chrono::milliseconds(Tickets::kLife).count());
          services.counters.count(std::string(call.route), 200);
          call.answer(200, o);
        },
};

}  // namespace hearth::server
