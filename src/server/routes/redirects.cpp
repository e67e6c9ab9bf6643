// GET /status, /chat, /quantize, /finetune, /dataset: parts of the page by their plain names.
#include "server/routes/routes.h"

namespace hearth::server {
namespace {

constexpr Route to_page(std::string_view path) {
  return {.method = "GET",
          .path = path,
          .access = Access::open,
          .summary = "leads to this part of the page at /",
          .handle = [](Services&, Call call) {
            call.answer({.status = 302,
                         .headers = {{"Location", "/#" + std::string(call.route)}},
                         .body = "",
                         .content_type = "text/plain; charset=utf-8"});
          }};
}

}  // namespace

const Route kToStatus = to_page("/status");
const Route kToChat = to_page("/chat");
const Route kToQuantize = to_page("/quantize");
const Route kToFinetune = to_page("/finetune");
const Route kToDataset = to_page("/dataset");

}  // namespace hearth::server
