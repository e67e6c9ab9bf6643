// A worker process as the front sees it: started, spoken to, and its end noticed.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/queue.h"
#include "server/front/recent_rate.h"
#include "server/generation.h"
#include "server/model_view.h"
#include "server/wire.h"

namespace hearth::server {

// The program that is started: argv[0] is its path; it finds the wire at descriptor kWorkerWireFd. Its environment
// holds nothing but what `environment` lists.
struct WorkerCommand {
  std::vector<std::string> argv, environment;
};
inline constexpr int kWorkerWireFd = 3;

// Thread-safe but for the constructor and destructor. Callbacks come on the link's own thread; none may block or
// destroy the link.
class WorkerLink {
 public:
  using Sink =
      std::function<void(const Event&)>;  // of one request: its last event is finish (of every answer) or error
  using Reply = std::function<void(const Event* error, const json::Value& body)>;  // error null: the body counts
  struct Owner {
    std::function<void(json::Object facts)> loaded;
    std::function<void(int64_t done, int64_t total)> progress;
    std::function<void(const Event& error)> failed;  // the load was refused; the worker ends
    std::function<void()> lost;                      // its end, once; then open requests get their errors
  };

  // Of errors the sinks and replies get what clients may read, `failed` the sentence as it was said. No path that the
  // command's words or its environment name gets out of here, nor one of a folder that they lie in.
  // Starts the process and asks it to load. Throws Error{io} when it cannot be started.
  WorkerLink(const WorkerCommand& command, Owner owner);
  ~WorkerLink();  // kills the process if it still runs
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // generation.id is set here, and returned. The sink gets an error {reason device_lost, code worker_lost} when the
  // worker ends before the answer did; `untaken` says that it ended by itself before it read the request, which the
  // next worker may get. `taken` is called when it has read it. One that cannot be written out, or for which there is
  // no memory, gets its error at once, and nothing of it is left here.
  using Taken = std::function<void()>;
  uint64_t submit(Generation generation, Sink sink, Taken taken = nullptr);
  void cancel(uint64_t id);
  void hold(uint64_t id);  // until release(): the client reads too slowly
  void release(uint64_t id);
  // Figures of the worker. Neither counts as a use of the model nor as an open request; the watchdog hears of it.
  void look(Reply reply) { call(FrameKind::stats, {}, std::move(reply)); }
  // Its id, for cancel(). Errors and `untaken` as submit().
  uint64_t call(FrameKind kind, json::Object body, Reply reply, Descriptors files = nullptr, Taken taken = nullptr);

  void drain();                                            // no new requests; the worker ends behind its last answer
  bool wait_end(std::chrono::milliseconds at_most) const;  // false: it still runs
  void kill();                                             // at once
  pid_t pid() const { return pid_; }
  int64_t open_requests() const;  // without looks
  WorkerActivity activity() const;
  // Milliseconds for which the engine was not heard of while requests were open; 0 when none is.
  int64_t silence_ms() const;
  // Asks the engine for a sign of life, if none is asked for already: it answers between two steps.
  void ask_for_sign();
  bool has_made_tokens() const { return has_made_tokens_; }
  bool is_lost() const { return lost_; }  // owner.lost has come or is about to

 private:
  void read_frames();
  void write_frames();
  void dispatch(const Frame& frame);
  void tell(FrameKind kind, uint64_t id);
  void lose();

  Owner owner_;
  const std::vector<std::filesystem::path> folders_;  // that the worker knows of
  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::unique_ptr<Wire> wire_;
  struct Outgoing {
    std::string bytes;
    Descriptors files = nullptr;
  };
  Queue<Outgoing> outgoing_;
  mutable std::mutex mutex_;
  struct Open {
    Sink sink = nullptr;
    Reply reply = nullptr;
    Taken taken = nullptr;
    int64_t answers = 1;
    bool is_look = false;
    bool of_engine = false;  // its reply comes from the engine's thread
    bool is_taken = false;
    bool admitted = false;  // the engine has begun one of its answers
  };
  std::optional<Event> send_request(uint64_t id, Open request, Outgoing frame);
  bool open_request(uint64_t id, Open request);
  Event told_event(const Frame& frame) const;
  static Event lost_event(uint64_t id, bool untaken);
  static Event event_at_hand(uint64_t id);
  std::map<uint64_t, std::shared_ptr<Open>> open_;
  std::atomic<bool> lost_{false};  // written under the lock
  std::atomic<uint64_t> next_id_{1};
  RecentRate rate_;
  std::atomic<int64_t> heard_ms_{0};  // on the steady clock: the engine's last frame, or the first request since idle
  std::atomic<bool> has_made_tokens_{false}, sign_asked_{false}, killed_{false};
  std::thread reader_, writer_;
};

}  // namespace hearth::server
