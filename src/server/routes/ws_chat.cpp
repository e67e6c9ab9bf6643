// GET /ws/chat: a conversation over a WebSocket. Hosts, origins and the credential were checked before the upgrade, as
// for every route.
#include "server/front/chat_socket.h"
#include "server/routes/routes.h"

namespace hearth::server {

const Route kChatSocket = {
    .method = "GET",
    .path = "/ws/chat",
    .access = Access::control,
    .summary = "a conversation over a WebSocket",
    .handle =
        [](Services& services, Call call) {
          if (call.request.head.wants_websocket())
            return ChatSocket::accept(services, call, services.auth.holder(call.request.head));
          Problem problem = problem_of(RequestError("", "/ws/chat is a WebSocket: ask for Upgrade: websocket"));
          problem.status = 426;
          services.counters.count(std::string(call.route), problem.status);
          net::Response response = error_response(call.dialect, problem, call.request_id);
          response.headers.emplace_back("Upgrade", "websocket");
          call.answer(std::move(response));
        },
};

}  // namespace hearth::server
