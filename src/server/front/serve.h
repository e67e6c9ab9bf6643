// The front process: sockets, credentials, models. `hearth serve` starts one and waits.
#pragma once
#include <chrono>
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

namespace hearth::server {

struct FrontOptions {
  std::string host = "127.0.0.1", unix_path;  // a Unix socket's path in place of a host
  int port = 8080;
  net::HttpLimits limits;
  ServeSettings settings;
  AuthOptions auth;
  ModelsOptions models;
  LibraryOptions library;
};

class Front {
 public:
  // Listens when it returns; loads nothing yet. Throws Error{invalid_argument} for a bind beyond this machine without a
  // key, Error{io} when it cannot listen, Error{not_found} for a default model that is not there.
  Front(FrontOptions options, hub::Store store);
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Loads the default model, if one is named; its facts. Throws as Models::load_default.
  json::Object load(const std::function<void(int64_t done, int64_t total)>& progress);

  // No new requests; open ones may take so long, then they are cut. Returns how many were.
  size_t drain(std::chrono::milliseconds at_most);

  // From now on these are the keys; what clients of others have open is cut.
  void replace_keys(std::vector<std::string> keys, std::vector<std::string> admin_keys);

  int port() const;
  std::string url() const;
  Models& models() { return *models_; }

 private:
  std::variant<net::Response, net::BodyPlan> on_head(const net::RequestHead& head);
  void on_request(net::Request request, std::shared_ptr<net::Exchange> exchange);
  net::Response refuse(const net::RequestHead& head, const Problem& problem);
  std::vector<net::Header> answer_headers(const net::RequestHead& head, const std::string& request_id) const;

  FrontOptions options_;
  Counters counters_;
  ResponseStore responses_{system_clock()};
  ChatStore chats_{system_clock()};
  std::unique_ptr<Auth> auth_;
  BadTries bad_tries_;
  OpenExchanges open_;
  std::unique_ptr<Models> models_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<Services> services_;
};

}  // namespace hearth::server
