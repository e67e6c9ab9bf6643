// GET /, /page.js, /page.css: a page that shows the server's state and chats with it.
#include "server/page/page.h"

#include "server/routes/routes.h"

namespace hearth::server {
namespace {

// The page loads its own two files and talks to its own server; no other page may show it, load its parts or keep a
// handle of its window.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

void send_file(const Call& call, std::string_view name, std::string_view type) {
  call.answer({.status = 200,
               .headers = {{"Content-Security-Policy", std::string(kPolicy)},
                           {"X-Frame-Options", "DENY"},
                           {"Cross-Origin-Resource-Policy", "same-origin"},
                           {"Cross-Origin-Opener-Policy", "same-origin"},
                           {"Referrer-Policy", "no-referrer"},
                           {"Cache-Control", "no-cache"}},
               .body = std::string(page_file(name)),
               .content_type = std::string(type)});
}

constexpr Route file(std::string_view path, std::string_view summary, void (*handle)(Services&, Call)) {
  return {.method = "GET", .path = path, .access = Access::open, .summary = summary, .handle = handle};
}

}  // namespace

const Route kPage = file("/", "a page that chats with the server",
                         [](Services&, Call call) { send_file(call, "page.html", "text/html; charset=utf-8"); });
const Route kPageScript = file("/page.js", "its script", [](Services&, Call call) {
  send_file(call, "page.js", "text/javascript; charset=utf-8");
});
const Route kPageStyle = file("/page.css", "its style",
                              [](Services&, Call call) { send_file(call, "page.css", "text/css; charset=utf-8"); });

}  // namespace hearth::server
