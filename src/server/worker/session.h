// A loaded model in a worker: requests in, event frames out. The threads of worker.h but for the caller's; that of
// words is text_thread.h's.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/queue.h"
#include "decode/adapter_table.h"
#include "decode/scheduler.h"
#include "server/generation.h"
#include "server/worker/answer_grammar.h"
#include "server/worker/live_request.h"
#include "server/worker/prompt.h"
#include "server/worker/text_thread.h"
#include "server/worker/unsaid.h"
#include "server/worker/worker.h"

namespace hearth::server {

class Session {
 public:
  // send gets whole frames, many at once; it may throw Error{io} when the front is gone: then nothing more is sent.
  // Called on any of the session's threads, never by two at once.
  Session(WorkerModel model, std::function<void(std::string_view frames)> send);
  ~Session();  // cancels what runs
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Receiving thread. Each request ends with a finish for each answer, with an error, or with a reply.
  void submit(json::Value body);
  void cancel(uint64_t id);
  void hold(uint64_t id, bool held);            // its reader is slow, or no longer
  void call(FrameKind kind, json::Value body);  // tokenize, detokenize, render, stats
  void adapter(Frame frame);                    // mount, unmount
  void drain();                                 // refuses new requests, returns when the last one has ended

 private:
  struct Key {
    uint64_t id;
    int64_t answer;
    auto operator<=>(const Key&) const = default;
  };
  using Command = std::function<void(decode::Scheduler&)>;  // engine thread

  template <class Work>
  void answer_adapter(uint64_t id, const Work& work);
  template <class Work>
  void on_engine(uint64_t id, Work work);
  void run_prompts();
  void run_engine();

  void run_adapters();
  void mount(const Frame& frame, uint64_t id);
  decode::AdapterChoice choose_adapter(const std::string& spec);
  void send_adapter_error(uint64_t id, const Error& error);
  void reply(uint64_t id, json::Object body);
  void prepare(const LiveRequestPtr& live);
  std::vector<decode::Request> requests_of(LiveRequest& live);
  Unsaid::Room room_for_request(const LiveRequestPtr& live);
  Unsaid::Room room_for_answers(const LiveRequestPtr& live);
  void start(decode::Scheduler& scheduler, const LiveRequestPtr& live, std::vector<decode::Request> requests,
             Unsaid::Room& no_adapter, Unsaid::Room& no_answers);
  decode::Events events_of(const LiveRequestPtr& live, int64_t answer);
  json::Object answer_call(FrameKind kind, const json::Value& body);
  json::Object figures(const decode::Scheduler& scheduler) const;
  void send_error(uint64_t id, const Error& error, std::string code = {});
  void send(std::string_view frames);
  void ended(const LiveRequestPtr& live);
  void stop_answer(const LiveRequestPtr& live, int64_t answer);

  WorkerModel model_;
  PromptModel prompt_model_;
  size_t rows_;
  std::unique_ptr<AnswerGrammars> grammars_;  // prompt thread; made for the first request that needs one
  std::function<void(std::string_view)> send_;
  std::mutex sending_;
  bool broken_ = false;  // under sending_

  std::mutex mutex_;
  std::condition_variable all_ended_;
  std::map<uint64_t, LiveRequestPtr> live_;
  bool draining_ = false;

  Queue<std::function<void()>> prompts_;
  Queue<Command> commands_;
  Queue<std::function<void()>> adapter_work_;
  std::map<Key, decode::RequestId> running_;  // engine thread
  decode::AdapterTable adapters_;             // engine thread
  Unsaid unsaid_;                             // engine thread
  decode::PrefixDisk* disk_ = nullptr;        // engine thread; null: there is none
  TextThread text_;                           // goes behind those that push
  std::thread prompt_thread_, engine_thread_, adapter_thread_;
};

}  // namespace hearth::server
