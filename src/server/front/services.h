// What a route needs of the front.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "net/server.h"
#include "server/front/chat_store.h"
#include "server/front/library.h"
#include "server/front/models.h"
#include "server/front/response_store.h"
#include "server/http/auth.h"
#include "server/http/tickets.h"
#include "server/limits.h"

namespace hearth::server {

struct ServeSettings {
  std::string version;                    // as `hearth version` has it
  std::string numerics;                   // of the answers
  bool strict_admission = false;          // LiveSettings has what holds now,
  std::chrono::milliseconds ping{2'000};  // 0: none; the same
  Limits limits;
  int64_t memory_budget = 0;
  std::filesystem::path adapters;  // folder of those that may be mounted by name
};

// Of ServeSettings, what a reload may change.
struct LiveSettings {
  std::atomic<bool> strict_admission{false};
  std::atomic<std::chrono::milliseconds> ping{};
  void set(const ServeSettings& settings) {
    strict_admission = settings.strict_admission;
    ping = settings.ping;
  }
};

// Counted on whatever thread; read by /stats and /metrics.
struct Counters {
  std::atomic<int64_t> prompt_tokens{0}, cached_tokens{0}, completion_tokens{0}, cache_hits{0}, cache_misses{0};
  std::atomic<int64_t> running{0};          // requests of generation under way
  std::map<std::string, int64_t> by_owner;  // the same, by whose they are; under mutex
  std::mutex mutex;
  std::map<std::pair<std::string, int>, int64_t> requests;  // by route and status
  struct Histogram {
    static constexpr double kBounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
    int64_t buckets[std::size(kBounds) + 1] = {};
    double sum = 0;
    int64_t count = 0;
    void add(double seconds, int64_t times = 1);
  };
  Histogram ttft, inter_token;                             // under mutex
  std::array<std::atomic<int64_t>, kLimitCount> limits{};  // how often each was passed
  void count(const std::string& route, int status);
  void count(const std::string& route, const Problem& problem);  // its limit too
  void count(LimitId passed) { ++limits[static_cast<size_t>(passed)]; }
};

struct Services {
  Models& models;
  Auth& auth;
  const ServeSettings& settings;
  const LiveSettings& live;
  Counters& counters;
  net::HttpServer& http;
  std::chrono::system_clock::time_point started_at;
  std::string owner_id;  // of this run of the server
  ResponseStore& responses;
  ChatStore& chats;
  Library& library;
  Tickets& tickets;
};

}  // namespace hearth::server
