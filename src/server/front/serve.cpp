#include "server/front/serve.h"

#include <charconv>

#include "server/dialects/answer.h"
#include "server/http/route.h"
#include "server/routes/routes.h"

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

// How this machine reaches it.
std::string url_of(const std::string& bound, int port) {
  const std::string host = bound == "0.0.0.0" || bound == "::" ? "127.0.0.1" : bound;
  return fmt::format("http://{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

}  // namespace

Front::Front(FrontOptions options, hub::Store store, std::vector<net::Listener> inherited)
    : options_(std::move(options)) {
  for (const net::Listener& listener : inherited)
    if (listener.port > 0) bound_hosts_.push_back(listener.host);
  if (inherited.empty() && options_.unix_path.empty()) bound_hosts_.push_back(options_.host);
  for (const std::string& host : bound_hosts_) options_.models.only_default |= !is_loopback(host);
  require_key(options_);
  live_.set(options_.settings);
  models_ = std::make_unique<Models>(options_.models, std::move(store));
  library_ = std::make_unique<Library>(options_.library, *models_);
  net::ServerOptions server;
  server.host = inherited.empty() && options_.unix_path.empty() ? options_.host : "";
  server.port = options_.port;
  if (inherited.empty()) server.unix_path = options_.unix_path;
  else url_ = inherited[0].port > 0 ? url_of(inherited[0].host, inherited[0].port) : "unix:" + inherited[0].address;
  server.inherited = std::move(inherited);
  open(main_, auth_of(options_), std::move(server));
  if (url_.empty())
    url_ = options_.unix_path.empty() ? url_of(options_.host, main_.http->port()) : "unix:" + options_.unix_path;
  if (!options_.metrics_host.empty()) {
    metrics_.only = &kMetrics;
    AuthOptions auth = auth_of(options_);
    auth.bind_host = options_.metrics_host;
    net::ServerOptions metrics;
    metrics.host = options_.metrics_host;
    metrics.port = options_.metrics_port;
    open(metrics_, auth, std::move(metrics));
  }
  services_ = std::make_unique<Services>(Services{*models_, *main_.auth, options_.settings, live_, counters_,
                                                  *main_.http, std::chrono::system_clock::now(), random_id(""),
                                                  responses_, chats_, *library_, tickets_});
  for (const Door* door : {&main_, &metrics_})
    if (door->http) door->http->start();
}

Front::~Front() {
  for (Door* door : {&main_, &metrics_}) door->http.reset();  // no request comes any more,
  library_.reset();
  models_.reset();  // and no answer
}

// It takes nobody in before HttpServer::start().
void Front::open(Door& door, const AuthOptions& auth, net::ServerOptions options) {
  door.auth = std::make_unique<Auth>(auth);
  options.limits = options_.settings.limits.http();
  options.begins = net::ServerOptions::Begins::when_told;
  net::Handlers handlers;
  handlers.on_head = [this, &door](const net::RequestHead& head) { return on_head(door, head); };
  handlers.on_request = [this, &door](net::Request request, std::shared_ptr<net::Exchange> exchange) {
    on_request(door, std::move(request), std::move(exchange));
  };
  handlers.error_body = [](int status, std::string_view sentence, std::string_view path) {
    const std::string request_id = random_id("req_");
    net::Response response = error_response(dialect_of(path), refusal(status, std::string(sentence), ""), request_id);
    put_request_id(response.headers, path, request_id);
    return response;
  };
  handlers.on_limit = [this, &door](net::HttpLimit limit, const net::RequestHead& head) {
    if (const std::optional<LimitId> id = limit_of(door, limit, head)) counters_.count(*id);
  };
  door.http = std::make_unique<net::HttpServer>(std::move(options), std::move(handlers));
}

void Front::require_key(const FrontOptions& options) const {
  if (!options.auth.keys.empty()) return;
  for (const std::string& host : bound_hosts_)
    if (!is_loopback(host))
      fail(ErrorKind::invalid_argument,
           "--host {} lets other machines in, and there is no key: add --api-key-file FILE, or serve on 127.0.0.1",
           host);
  if (!options_.metrics_host.empty() && !is_loopback(options_.metrics_host))
    fail(ErrorKind::invalid_argument,
         "--metrics-listen {} lets other machines in, and there is no key: add --api-key-file FILE, or listen on "
         "127.0.0.1",
         options_.metrics_host);
}

// The first of several bound hosts is the one that binds all addresses, if any does.
AuthOptions Front::auth_of(const FrontOptions& options) const {
  AuthOptions auth = options.auth;
  auth.bind_host = options_.host;
  for (const std::string& host : bound_hosts_) {
    if (host == "0.0.0.0" || host == "::" || &host == &bound_hosts_[0]) auth.bind_host = host;
    auth.hosts.push_back(host);
  }
  return auth;
}

std::string Front::metrics_url() const {
  return metrics_.http ? url_of(options_.metrics_host, metrics_.http->port()) + "/metrics" : "";
}

json::Object Front::load(const std::function<void(int64_t, int64_t)>& progress) {
  return options_.models.default_model.empty() ? json::Object() : models_->load_default(progress);
}

size_t Front::drain(std::chrono::milliseconds at_most) {
  constexpr net::Milliseconds kLeast(200);
  const auto begin = std::chrono::steady_clock::now();
  models_->drain(at_most);
  const auto taken = std::chrono::duration_cast<net::Milliseconds>(std::chrono::steady_clock::now() - begin);
  const size_t cut = main_.http->drain(std::max(kLeast, net::Milliseconds(at_most) - taken));
  if (metrics_.http) metrics_.http->drain(kLeast);
  return cut;
}

void Front::reload(const FrontOptions& options) {
  require_key(options);
  models_->check(options.models);
  const AuthOptions auth = auth_of(options);
  for (const Door* door : {&main_, &metrics_})
    if (door->auth) door->auth->reload(auth);
  live_.set(options.settings);
  models_->reload(options.models);
  library_->reload(options.library.command);
  open_.cut([&](const std::string& owner) { return !main_.auth->knows_owner(owner); });
  chats_.revoke([&](const std::string& holder) { return !main_.auth->may_control(holder); });
}

void Front::sign_of_life(std::function<void()> fn) {
  main_.http->after(net::Milliseconds(0), [this, fn = std::move(fn)] {
    models_->silence_ms();
    fn();
  });
}

net::Response Front::refuse(const Door& door, const net::RequestHead& head, const Problem& problem) {
  const std::string request_id = random_id("req_");
  net::Response response = error_response(dialect_of(head.path), problem, request_id);
  for (net::Header& header : answer_headers(door, head, request_id)) response.headers.push_back(std::move(header));
  return response;
}

std::vector<net::Header> Front::answer_headers(const Door& door, const net::RequestHead& head,
                                               const std::string& request_id) {
  std::vector<net::Header> headers = door.auth->cors_headers(head);
  put_request_id(headers, head.path, request_id);
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  return headers;
}

Match Front::find(const Door& door, const net::RequestHead& head) {
  Match found = match(head.method, head.path);
  if (door.only && found.route != door.only) return {};
  return found;
}

// Without a credential of its own; its first frame says whose it is.
bool Front::comes_by_ticket(const Route& route, const net::RequestHead& head) {
  return route.by_ticket && head.wants_websocket() && head.header_count("authorization") == 0 &&
         head.header_count("x-api-key") == 0;
}

// The row of the table; none for a body that no route reads.
std::optional<LimitId> Front::limit_of(const Door& door, net::HttpLimit limit, const net::RequestHead& head) {
  switch (limit) {
    case net::HttpLimit::request_line: return LimitId::request_line;
    case net::HttpLimit::head: return LimitId::head;
    case net::HttpLimit::headers: return LimitId::headers;
    case net::HttpLimit::head_time: return LimitId::head_time;
    case net::HttpLimit::body_idle: return LimitId::body_idle;
    case net::HttpLimit::connections: return LimitId::connections;
    case net::HttpLimit::slow_reader: return LimitId::slow_reader;
    case net::HttpLimit::body: break;
  }
  const Match found = find(door, head);
  const LimitId* id = found.route ? body_limit(*found.route) : nullptr;
  return id ? std::optional(*id) : std::nullopt;
}

std::variant<net::Response, net::BodyPlan> Front::on_head(const Door& door, const net::RequestHead& head) {
  if (head.method == "OPTIONS") {
    std::vector<net::Header> cors = door.auth->cors_headers(head);
    if (!cors.empty()) return net::Response{.status = 204, .headers = std::move(cors)};
  }
  const Match found = find(door, head);
  const Access access = found.route ? found.route->access : Access::open;
  const bool by_ticket = found.route && comes_by_ticket(*found.route, head);
  if (const auto problem = by_ticket ? door.auth->check_site(head) : door.auth->check(head, access)) {
    counters_.count(found.route ? std::string(found.route->path) : "none", problem->status);
    net::Response response = refuse(door, head, *problem);
    if (problem->status == 401 && Auth::has_credential(head))
      response.delay = bad_tries_.add(head.peer, std::chrono::steady_clock::now());
    return response;
  }
  if (!found.route) {
    counters_.count("none", found.allow.empty() ? 404 : 405);
    if (found.allow.empty())
      return refuse(door, head,
                    refusal(404, fmt::format("there is no route {} {}", head.method, head.path), "not_found"));
    net::Response response =
        refuse(door, head, refusal(405, fmt::format("{} takes {}", head.path, found.allow), "method_not_allowed"));
    response.headers.emplace_back("Allow", found.allow);
    return response;
  }
  const LimitId* limit = body_limit(*found.route);
  if (limit && !is_json(head.header("content-type").value_or("")))
    return refuse(door, head,
                  refusal(415, "the body must be sent as Content-Type: application/json", "unsupported_media_type"));
  const size_t most = limit ? options_.settings.limits.size_of(*limit) : 0;
  if (declared_length(head) > most) {
    if (limit) counters_.count(*limit);
    return refuse(door, head, refusal(413, fmt::format("the body may have {} bytes", most), "body_too_large"));
  }
  return net::BodyPlan{most};
}

void Front::on_request(const Door& door, net::Request request, std::shared_ptr<net::Exchange> exchange) {
  const Match found = find(door, request.head);
  Call call;
  call.request_id = random_id("req_");
  call.headers = answer_headers(door, request.head, call.request_id);
  call.dialect = found.route->dialect;
  const bool by_ticket = comes_by_ticket(*found.route, request.head);
  if (!by_ticket) call.owner = door.auth->owner(request.head);
  const bool needs_key = found.route->access != Access::open && !call.owner.empty();
  if (needs_key) open_.add(call.owner, exchange);
  call.parameter = found.parameter;
  call.route = found.route->path;
  call.limits = &options_.settings.limits;
  call.exchange = exchange;
  const Call bare = call;  // to refuse with: the body is the route's, and gone when it has failed
  call.request = std::move(request);
  if (needs_key && !door.auth->knows_owner(call.owner)) {  // taken back while the body came
    counters_.count(std::string(found.route->path), 401);
    Problem problem = refusal(401, "the API key is not one of this server's", "invalid_api_key");
    problem.type = "authentication_error";
    return bare.refuse(problem);
  }
  try {
    found.route->handle(*services_, std::move(call));
  } catch (...) {
    const Problem problem = problem_at_hand();
    counters_.count(std::string(found.route->path), problem);
    bare.refuse(problem);
  }
}

}  // namespace hearth::server
