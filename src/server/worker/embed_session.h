// A loaded embedding model in a worker: texts in, vectors out, one request after the other.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/json.h"
#include "base/queue.h"
#include "server/wire.h"
#include "server/worker/worker.h"

namespace hearth::server {

// The interface of Session (session.h), as far as an embedding model has one.
class EmbedSession {
 public:
  // send as Session's; called on the session's thread and the receiving one, never by two at once.
  EmbedSession(WorkerModel model, std::function<void(std::string_view frames)> send);
  ~EmbedSession();
  EmbedSession(const EmbedSession&) = delete;
  EmbedSession& operator=(const EmbedSession&) = delete;

  // Receiving thread.
  void submit(json::Value body);  // it makes no answers: an error
  void cancel(uint64_t id);
  void hold(uint64_t, bool) {}
  void call(FrameKind kind, json::Value body);
  void adapter(Frame frame);  // it takes none: an error
  void drain();

 private:
  struct Ask {
    uint64_t id = 0;
    FrameKind kind{};
    json::Value body;
    std::atomic<bool> cancelled{false};
  };
  void run();
  json::Object answer(const Ask& ask);
  json::Object embed(const Ask& ask);
  json::Object counts() const;
  void reply(uint64_t id, json::Object body);
  void refuse(uint64_t id, const Error& error);
  void send(const Frame& frame);

  WorkerModel model_;
  std::function<void(std::string_view)> send_;
  std::mutex sending_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Ask>> asked_;
  int64_t embedded_ = 0, cancelled_ = 0;  // requests that were answered, that were given up; session's thread
  Queue<std::shared_ptr<Ask>> work_;
  std::thread thread_;
};

}  // namespace hearth::server
