// The one table of routes (spec server 3.1): the router, /openapi.json, docs and the security tests are made from it.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/exchange.h"
#include "server/front/services.h"
#include "server/http/auth.h"
#include "server/http/fields.h"
#include "server/http/problem.h"
#include "server/limits.h"

namespace hearth::server {

enum class Body : uint8_t { none, control, generation };  // of a request: whether one is read, and which limit it has

// One request as its route gets it: let in, read whole.
struct Call {
  net::Request request;
  std::shared_ptr<net::Exchange> exchange;
  std::string request_id;
  std::vector<net::Header> headers{};  // of every answer: x-request-id, what a page of a configured origin needs
  Dialect dialect = Dialect::openai;   // of errors
  std::string owner;                   // whose it is: Auth::owner
  std::string parameter;               // what stands for {id} in the path
  std::string_view route;              // the path in the table
  const Limits* limits = nullptr;      // that hold

  // The body as a JSON object within the limits. Throws RequestError where it is none.
  json::Object body() const;
  std::string query(std::string_view name) const;  // "" when absent
  void answer(int status, const json::Value& document) const;
  void answer(net::Response response) const;
  void refuse(const Problem& problem) const;
};

struct Route {
  std::string_view method, path;  // "/v1/models/{id}": the last part may be a parameter, which may hold slashes
  Access access = Access::inference;
  Body body = Body::none;
  bool by_ticket = false;  // a WebSocket that may come without a credential, and then says a ticket (http/tickets.h)
  Dialect dialect = Dialect::openai;
  std::string_view summary;
  std::vector<std::span<const Field>> (*fields)() = nullptr;  // of the body, for the schema; null: it has none
  void (*handle)(Services& services, Call call) = nullptr;    // may throw Error: answered in the dialect's shape
};

// Which limit its body has; null: it has none, as none is read.
const LimitId* body_limit(const Route& route);

// All of them; defined in routes/routes.cpp. Each stands in a file of its own in routes/.
std::span<const Route* const> routes();

struct Match {
  const Route* route = nullptr;  // null: no such path, or not with this method
  std::string parameter;
  std::string allow;  // methods of the path, where the method is the trouble
};
Match match(std::string_view method, std::string_view path);

}  // namespace hearth::server
