// All that a request meets in a front, with scripted workers in place of models.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/server.h"
#include "server/front/scripted_models.h"
#include "server/front/services.h"

namespace hearth::server {

class ScriptedServices : public ScriptedModels {
 protected:
  // The first model is the default one.
  void serve(const std::vector<std::string>& names, net::Handlers handlers) {
    start(names, 1000, [&](ModelsOptions& o) { o.default_model = path(names[0]); });
    library_ = std::make_unique<Library>(LibraryOptions(), *models_);
    http_ = std::make_unique<net::HttpServer>(net::ServerOptions(), std::move(handlers));
    services_ = std::make_unique<Services>(Services{*models_, auth_, settings_, live_, counters_, *http_,
                                                    std::chrono::system_clock::now(), "", responses_, chats_, *library_,
                                                    tickets_});
  }

  void TearDown() override {
    http_ = nullptr;
    library_ = nullptr;
    models_ = nullptr;
  }

  Auth auth_{AuthOptions()};
  ServeSettings settings_;
  LiveSettings live_;
  Counters counters_;
  ResponseStore responses_{system_clock()};
  ChatStore chats_{system_clock()};
  Tickets tickets_{system_clock()};
  std::unique_ptr<Library> library_;
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<Services> services_;
};

}  // namespace hearth::server
