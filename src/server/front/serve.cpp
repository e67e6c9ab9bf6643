#include "server/front/serve.h"

#include <charconv>

#include "server/dialects/answer.h"
#include "server/http/route.h"

namespace hearth::server {
namespace {

// The shape of an error before any route is known.
Dialect dialect_of(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages";
  const bool under = path.starts_with(kMessages) && (path.size() == kMessages.size() || path[kMessages.size()] == '/');
  return under ? Dialect::anthropic : Dialect::openai;
}

bool is_json(std::string_view type) {
  const std::string_view name = type.substr(0, type.find(';'));
  const size_t end = name.find_last_not_of(" \t");
  return end != std::string_view::npos && net::same_token(name.substr(0, end + 1), "application/json");
}

// Digits alone, which the server has checked.
uint64_t declared_length(const net::RequestHead& head) {
  const std::string_view text = head.header("content-length").value_or("0");
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  return error == std::errc() ? length : UINT64_MAX;
}

void put_request_id(std::vector<net::Header>& headers, std::string_view path, const std::string& request_id) {
  headers.emplace_back("x-request-id", request_id);
  if (dialect_of(path) == Dialect::anthropic) headers.emplace_back("request-id", request_id);
}

Problem refusal(int status, std::string message, std::string code) {
  return {.status = status,
          .type = "invalid_request_error",
          .message = std::move(message),
          .param = {},
          .code = std::move(code)};
}

}  // namespace

Front::Front(FrontOptions options, hub::Store store) : options_(std::move(options)) {
  const bool beyond = options_.unix_path.empty() && !is_loopback(options_.host);
  if (beyond && options_.auth.keys.empty())
    fail(ErrorKind::invalid_argument,
         "--host {} lets other machines in, and there is no key: add --api-key-file FILE, or serve on 127.0.0.1",
         options_.host);
  options_.auth.bind_host = options_.host;
  auth_ = std::make_unique<Auth>(options_.auth);
  models_ = std::make_unique<Models>(options_.models, std::move(store));
  library_ = std::make_unique<Library>(options_.library, *models_);
  net::ServerOptions server;
  server.host = options_.unix_path.empty() ? options_.host : "";
  server.port = options_.port;
  server.unix_path = options_.unix_path;
  server.limits = options_.limits;
  net::Handlers handlers;
  handlers.on_head = [this](const net::RequestHead& head) { return on_head(head); };
  handlers.on_request = [this](net::Request request, std::shared_ptr<net::Exchange> exchange) {
    on_request(std::move(request), std::move(exchange));
  };
  handlers.error_body = [](int status, std::string_view sentence, std::string_view path) {
    const std::string request_id = random_id("req_");
    net::Response response = error_response(dialect_of(path), refusal(status, std::string(sentence), ""), request_id);
    put_request_id(response.headers, path, request_id);
    return response;
  };
  http_ = std::make_unique<net::HttpServer>(std::move(server), std::move(handlers));
  services_ = std::make_unique<Services>(Services{*models_, *auth_, options_.settings, counters_, *http_,
                                                  std::chrono::system_clock::now(), random_id(""), responses_, chats_,
                                                  *library_});
}

Front::~Front() {
  http_.reset();  // no request comes any more,
  library_.reset();
  models_.reset();  // and no answer
}

int Front::port() const { return http_->port(); }

std::string Front::url() const {
  if (!options_.unix_path.empty()) return "unix:" + options_.unix_path;
  const bool any = options_.host == "0.0.0.0" || options_.host == "::";
  const std::string host = any ? "127.0.0.1" : options_.host;
  return fmt::format("http://{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port());
}

json::Object Front::load(const std::function<void(int64_t, int64_t)>& progress) {
  return options_.models.default_model.empty() ? json::Object() : models_->load_default(progress);
}

size_t Front::drain(std::chrono::milliseconds at_most) {
  const auto begin = std::chrono::steady_clock::now();
  models_->drain(at_most);
  const auto taken = std::chrono::duration_cast<net::Milliseconds>(std::chrono::steady_clock::now() - begin);
  return http_->drain(std::max(net::Milliseconds(200), net::Milliseconds(at_most) - taken));
}

void Front::replace_keys(std::vector<std::string> keys, std::vector<std::string> admin_keys) {
  auth_->replace_keys(std::move(keys), std::move(admin_keys));
  open_.cut([&](const std::string& owner) { return !auth_->knows_owner(owner); });
  chats_.revoke([&](const std::string& holder) { return !auth_->may_control(holder); });
}

net::Response Front::refuse(const net::RequestHead& head, const Problem& problem) {
  const std::string request_id = random_id("req_");
  net::Response response = error_response(dialect_of(head.path), problem, request_id);
  for (net::Header& header : answer_headers(head, request_id)) response.headers.push_back(std::move(header));
  return response;
}

std::vector<net::Header> Front::answer_headers(const net::RequestHead& head, const std::string& request_id) const {
  std::vector<net::Header> headers = auth_->cors_headers(head);
  put_request_id(headers, head.path, request_id);
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  return headers;
}

std::variant<net::Response, net::BodyPlan> Front::on_head(const net::RequestHead& head) {
  if (head.method == "OPTIONS") {
    std::vector<net::Header> cors = auth_->cors_headers(head);
    if (!cors.empty()) return net::Response{.status = 204, .headers = std::move(cors)};
  }
  const Match found = match(head.method, head.path);
  const Access access = found.route ? found.route->access : Access::open;
  if (const std::optional<Problem> problem = auth_->check(head, access)) {
    counters_.count(found.route ? std::string(found.route->path) : "none", problem->status);
    net::Response response = refuse(head, *problem);
    if (problem->status == 401 && Auth::has_credential(head))
      response.delay = bad_tries_.add(head.peer, std::chrono::steady_clock::now());
    return response;
  }
  if (!found.route) {
    counters_.count("none", found.allow.empty() ? 404 : 405);
    if (found.allow.empty())
      return refuse(head, refusal(404, fmt::format("there is no route {} {}", head.method, head.path), "not_found"));
    net::Response response =
        refuse(head, refusal(405, fmt::format("{} takes {}", head.path, found.allow), "method_not_allowed"));
    response.headers.emplace_back("Allow", found.allow);
    return response;
  }
  if (found.route->body_max > 0 && !is_json(head.header("content-type").value_or("")))
    return refuse(head,
                  refusal(415, "the body must be sent as Content-Type: application/json", "unsupported_media_type"));
  if (declared_length(head) > found.route->body_max)
    return refuse(head,
                  refusal(413, fmt::format("the body may have {} bytes", found.route->body_max), "body_too_large"));
  return net::BodyPlan{found.route->body_max};
}

void Front::on_request(net::Request request, std::shared_ptr<net::Exchange> exchange) {
  const Match found = match(request.head.method, request.head.path);
  Call call;
  call.request_id = random_id("req_");
  call.headers = answer_headers(request.head, call.request_id);
  call.dialect = found.route->dialect;
  call.owner = auth_->owner(request.head);
  const bool needs_key = found.route->access != Access::open && !call.owner.empty();
  if (needs_key) open_.add(call.owner, exchange);
  call.parameter = found.parameter;
  call.route = found.route->path;
  call.exchange = exchange;
  call.request = std::move(request);
  if (needs_key && !auth_->knows_owner(call.owner)) {  // taken back while the body came
    counters_.count(std::string(found.route->path), 401);
    Problem problem = refusal(401, "the API key is not one of this server's", "invalid_api_key");
    problem.type = "authentication_error";
    return call.refuse(problem);
  }
  try {
    found.route->handle(*services_, call);
  } catch (const Error& error) {
    const Problem problem = problem_of(error);
    counters_.count(std::string(found.route->path), problem.status);
    call.refuse(problem);
  }
}

}  // namespace hearth::server
