// The front process: sockets, credentials, models. `hearth serve` starts one and waits.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hub/store.h"
#include "net/server.h"
#include "server/front/library.h"
#include "server/front/models.h"
#include "server/front/services.h"
#include "server/front/open_exchanges.h"
#include "server/http/auth.h"
#include "server/http/bad_tries.h"
#include "server/http/route.h"

namespace hearth::server {

struct FrontOptions {
  std::string host = "127.0.0.1", unix_path;  // a Unix socket's path in place of a host
  int port = 8080;
  std::string metrics_host;  // where /metrics alone is served too; empty: nowhere
  int metrics_port = 0;
  ServeSettings settings;
  AuthOptions auth;
  ModelsOptions models;
  LibraryOptions library;
};

class Front {
 public:
  // Listens when it returns, on the inherited sockets in place of host and port where there are any; loads nothing yet.
  // Throws Error{invalid_argument} for a bind beyond this machine without a key, Error{io} when it cannot listen,
  // Error{not_found} for a default model that is not there.
  Front(FrontOptions options, hub::Store store, std::vector<net::Listener> inherited = {});
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Loads the default model, if one is named; its facts. Throws as Models::load_default.
  json::Object load(const std::function<void(int64_t done, int64_t total)>& progress);

  // No new requests; open ones may take so long, then they are cut. Returns how many were.
  size_t drain(std::chrono::milliseconds at_most);

  // From now on keys, hosts, origins, admission, pings and what Models::reload and Library::reload take are those of
  // the options; the rest of them does not count. What clients of keys that are gone have open is cut, and so are the
  // models' chats that they may no longer control. Throws Error{invalid_argument}, and changes nothing, where a server
  // that other machines reach would have no key, and as Models::check.
  void reload(const FrontOptions& options);

  // Calls fn on an I/O thread if that and the list of models answer: a sign of life of the whole process.
  void sign_of_life(std::function<void()> fn);

  const std::string& url() const { return url_; }
  std::string metrics_url() const;  // empty: it has no listener of its own
  Models& models() { return *models_; }
  const Models& models() const { return *models_; }

 private:
  // A way in: who may come by it, and to which routes.
  struct Door {
    std::unique_ptr<Auth> auth;
    const Route* only = nullptr;  // null: all of them
    std::unique_ptr<net::HttpServer> http;
  };
  void open(Door& door, const AuthOptions& auth, net::ServerOptions options);
  void require_key(const FrontOptions& options) const;
  AuthOptions auth_of(const FrontOptions& options) const;
  static Match find(const Door& door, const net::RequestHead& head);
  static bool comes_by_ticket(const Route& route, const net::RequestHead& head);
  static std::optional<LimitId> limit_of(const Door& door, net::HttpLimit limit, const net::RequestHead& head);
  std::variant<net::Response, net::BodyPlan> on_head(const Door& door, const net::RequestHead& head);
  void on_request(const Door& door, net::Request request, std::shared_ptr<net::Exchange> exchange);
  net::Response refuse(const Door& door, const net::RequestHead& head, const Problem& problem);
  static std::vector<net::Header> answer_headers(const Door& door, const net::RequestHead& head,
                                                 const std::string& request_id);

  FrontOptions options_;
  Counters counters_;
  ResponseStore responses_{system_clock()};
  ChatStore chats_{system_clock(), {.sockets_max = options_.settings.limits.size_of(LimitId::websockets)}};
  Tickets tickets_{system_clock()};
  LiveSettings live_;
  BadTries bad_tries_;
  OpenExchanges open_;
  std::unique_ptr<Models> models_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<Services> services_;
  Door main_, metrics_;
  std::vector<std::string> bound_hosts_;  // that the main door is reached at
  std::string url_;
};

}  // namespace hearth::server
