// A loaded model in a worker: requests in, event frames out. The threads of worker.h but for the caller's.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "decode/adapter_table.h"
#include "decode/scheduler.h"
#include "server/generation.h"
#include "server/worker/answer_grammar.h"
#include "server/worker/answer_text.h"
#include "server/worker/prompt.h"
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
  void adapter(Frame frame);                    // mount, unmount, describe
  void drain();                                 // refuses new requests, returns when the last one has ended

 private:
  struct Live;  // a request, shared by the threads: what each may touch is said there
  using LivePtr = std::shared_ptr<Live>;
  struct Key {
    uint64_t id;
    int64_t answer;
    auto operator<=>(const Key&) const = default;
  };
  struct Token {
    int32_t id;
    float logprob;
    std::vector<std::pair<int32_t, float>> top;
  };
  // What the engine thread tells the text thread.
  struct Output {
    enum class Kind : uint8_t { admitted, logits, token, done, failed } kind;
    LivePtr live;
    int64_t answer;
    Token token{};
    std::vector<float> logits{};
    int64_t cached = 0;
    decode::FinishReason reason{};
    decode::GenerateStats stats{};
    std::shared_ptr<const Error> error{};
  };
  using Command = std::function<void(decode::Scheduler&)>;  // engine thread

  template <class Work>
  void answer_adapter(uint64_t id, const Work& work);
  template <class Work>
  void on_engine(uint64_t id, Work work);
  void run_prompts();
  void run_engine();
  void run_text();

  void run_adapters();
  void mount(const Frame& frame, uint64_t id);
  decode::AdapterChoice choose_adapter(const std::string& spec);
  void send_adapter_error(uint64_t id, const Error& error);
  void reply(uint64_t id, json::Object body);
  void prepare(const LivePtr& live);
  void start(decode::Scheduler& scheduler, const LivePtr& live, std::vector<decode::Request> requests);
  decode::Events events_of(const LivePtr& live, int64_t answer);
  json::Object answer_call(FrameKind kind, const json::Value& body);
  bool handle(Output& output);
  void keep(const LivePtr& live, int64_t answer, std::vector<Event>& events);
  void send_kept();
  void send_error(uint64_t id, const Error& error, std::string code = {});
  void send(std::string_view frames);
  void ended(const LivePtr& live);
  void stop_answer(const LivePtr& live, int64_t answer);

  WorkerModel model_;
  PromptModel prompt_model_;
  size_t rows_;
  std::unique_ptr<AnswerGrammars> grammars_;  // prompt thread; made for the first request that needs one
  std::function<void(std::string_view)> send_;
  std::mutex sending_;
  bool broken_ = false;  // under sending_

  std::mutex mutex_;
  std::condition_variable all_ended_;
  std::map<uint64_t, LivePtr> live_;
  bool draining_ = false;

  Queue<std::function<void()>> prompts_;
  Queue<Command> commands_;
  Queue<Output> outputs_;
  std::vector<std::pair<LivePtr, int64_t>> kept_;  // text thread: answers with events that are not sent yet
  Queue<std::function<void()>> adapter_work_;
  std::map<Key, decode::RequestId> running_;  // engine thread
  decode::AdapterTable adapters_;             // engine thread
  decode::PrefixDisk* disk_ = nullptr;        // engine thread; null: there is none
  std::thread prompt_thread_, engine_thread_, text_thread_, adapter_thread_;
};

}  // namespace hearth::server
