// GET /ws/chat: a conversation over a WebSocket. Hosts, origins and the credential were checked before the upgrade, as
// for every route; one without a credential says a ticket first.
#include "server/front/chat_socket.h"
#include "server/routes/routes.h"

namespace hearth::server {
namespace {

constexpr const char* kAsk = "/ws/chat is a WebSocket: ask for Upgrade: websocket";

}  // namespace

const Route kChatSocket = {
    .method = "GET",
    .path = "/ws/chat",
    .access = Access::control,
    .by_ticket = true,
    .summary = "a conversation over a WebSocket",
    .handle =
        [](Services& services, Call call) {
          const net::RequestHead& head = call.request.head;
          const auto refusal = net::refuse_websocket(head);
          if (!refusal) return ChatSocket::accept(services, call, services.auth.holder(head));
          const bool asks = head.wants_websocket();
          Problem problem = problem_of(RequestError("", asks ? std::string(refusal->sentence) : std::string(kAsk)));
          problem.status = asks ? refusal->status : 426;
          services.counters.count(std::string(call.route), problem.status);
          net::Response response = error_response(call.dialect, problem, call.request_id);
          if (problem.status == 426) {
            response.headers.emplace_back("Upgrade", "websocket");
            response.headers.emplace_back("Sec-WebSocket-Version", "13");
          }
          call.answer(std::move(response));
        },
};

}  // namespace hearth::server
