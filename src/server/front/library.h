// What the models on this machine are, whether they fit, and which adapters are theirs (spec server 3.4: /library,
// /fit). A thread of its own waits for the processes that read the headers, one after the other.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "server/front/available_adapters.h"
#include "server/front/model_headers.h"
#include "server/front/models.h"

namespace hearth::server {

struct LibraryOptions {
  // The program that reads the headers and plans for so many positions; nullopt: as the model would be served. On the
  // library's thread.
  std::function<WorkerCommand(const hub::FoundModel& model, std::optional<int64_t> positions)> command;
  std::chrono::milliseconds cache{30'000}, read_max{20'000};
};

// Thread-safe. Callbacks come on the caller's thread or the library's; none may block.
class Library {
 public:
  Library(LibraryOptions options, const Models& models);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // From now on this reads the headers: what was read before is forgotten.
  void reload(std::function<WorkerCommand(const hub::FoundModel& model, std::optional<int64_t> positions)> command);

  // {models: [...]}, at most options.cache old. Many who ask at once wait for one look.
  using Done = std::function<void(const json::Value& document)>;
  using Refused = std::function<void(const Refusal&)>;
  void list(Done done, Refused refused);

  // The document of /fit for one model.
  void fit(const std::string& id, std::optional<int64_t> positions, Done done, Refused refused);

  // The adapters in the folder, and whether each was trained on the model, which need not be loaded.
  using Adapters = std::function<void(const std::vector<AvailableAdapter>& adapters)>;
  void adapters(const std::string& id, const std::filesystem::path& folder, Adapters done, Refused refused);

 private:
  using Clock = std::chrono::steady_clock;
  struct ListAsk {
    Done done;
    Refused refused;
  };

  // One question. What `find` throws is why it is refused; the answer that it gives is told behind it.
  struct Ask {
    std::function<std::function<void()>()> find;
    Refused refused;
  };

  void run();
  void answer_lists();
  void push(Ask ask);
  void answer_asks();
  json::Value look();
  WorkerCommand command_of(const hub::FoundModel& model, std::optional<int64_t> positions);
  ModelHeaders read(const hub::FoundModel& model, std::optional<int64_t> positions);

  LibraryOptions options_;
  const Models& models_;
  std::map<std::string, ModelHeaders> read_;  // by files_state; the library's thread
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<Ask> asks_;
  std::vector<ListAsk> lists_;
  json::Value document_;
  std::optional<Clock::time_point> made_;
  bool outdated_ = false;  // read_ is of an earlier command
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace hearth::server
