// One conversation over a WebSocket (spec web 3.1): its messages, what its turns are asked with, the turn under way,
// and the frames that were sent. It outlives its socket: a client that comes back finds it (front/chat_store.h).
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/websocket.h"
#include "server/dialects/chat_frames.h"
#include "server/front/chat_messages.h"
#include "server/front/frame_log.h"
#include "server/front/generate.h"
#include "server/front/model_names.h"

namespace hearth::server {

// Thread-safe. Frames of a socket that is not its own any more are not heard.
class Chat : public std::enable_shared_from_this<Chat> {
 public:
  using Socket = std::shared_ptr<net::WebSocket>;
  static constexpr size_t kQueueMax = 32, kLogBytes = size_t{1} << 20, kIdsKept = 256;

  // `owner`: Auth::owner, of its generations.
  Chat(Services& services, std::string owner);

  const std::string& id() const { return id_; }
  size_t bytes() const;
  bool has_begun() const;  // something was said

  // Its first frames: the answer to new_session, if that was asked for, and ready.
  void open(const Socket& socket, const json::Value& frame_id = {});
  // Goes on over this socket, and ends the one before: sends what followed frame `after_seq`, or the history where that
  // is not kept. Throws RequestError for a frame that was never sent.
  void resume(const Socket& socket, const json::Value& frame_id, int64_t after_seq);
  // The socket is gone: its turn ends, and what is queued behind it goes. False: it goes on over another one.
  bool leave(const net::WebSocket* socket);

  void handle(const Socket& from, const frames::ClientFrame& frame);
  void send(const Socket& to, const std::string& frame);
  void drained(const net::WebSocket* socket);

 private:
  class TurnSink;
  struct Start {  // a turn that is to be begun without the lock
    GenerationCall run;
    std::shared_ptr<TurnSink> sink;
  };
  struct Chosen {  // by set_model
    ModelChoice model;
    std::vector<std::string> adapters;  // that are mounted on it
  };
  struct Next {           // what follows the ack of a frame
    std::string answers;  // id of the message that a turn answers; "": none begins
    bool aborts = false, is_ready = false, queue_changed = false;
    std::string dropped;  // the adapter that the model which was set does not have
  };
  // A turn is to end, and what is queued behind it goes on; if the conversation has no socket (any more); before its
  // history is told, behind which the queue goes on.
  enum class Ends : uint8_t { always, when_left, for_history };

  // With the lock.
  Next apply(const frames::ClientFrame& frame, const std::optional<Chosen>& chosen);
  std::string set_model(const Chosen& chosen);  // gives Next::dropped
  std::string add_prompt(const std::string& text, std::string parent);
  const ChatMessage& message(const json::Object& body, std::string_view key) const;
  void set_sampling(const json::Object& body);
  bool put(std::string_view frame);  // WebSocket::send's answer
  void put_ready(const std::optional<ModelView>& view);
  void put_queue();                                            // now, or when the client has read what waits for it
  std::optional<Start> begin_turn(const std::string& parent);  // nullopt: it has ended already, and that was told
  std::function<void()> refuse_turn(const Problem& problem);   // as end_turn()
  // Gives what is to be let go of without the lock.
  std::function<void()> end_turn(std::string_view reason);
  bool put_lines(std::string_view frames);  // each with a line feed behind it
  void continue_soon();                     // with what is queued, if something is

  // Without the lock: they look at the store.
  std::optional<ModelView> model_view(const std::string& name) const;
  Chosen choose(const std::string& name) const;
  void say_ready();

  void start(std::optional<Start> start);
  void abort_turn(Ends which);
  void go_on();  // with what is queued
  bool write(const TurnSink* turn, std::string_view frames);
  // `problem` null: with the reason of its record. Of what is not its turn any more nothing is said.
  void ended(const TurnSink* turn, const Problem* problem);

  Services& services_;
  const std::string id_, owner_;
  mutable std::mutex mutex_;
  Socket socket_;  // null: nobody is there
  FrameLog log_{kLogBytes};
  std::deque<std::string> done_;  // ids of the frames that were taken last, as JSON
  ChatMessages messages_;
  std::vector<std::string> queue_;
  std::string model_, system_;  // the model as it was named; "": the default one
  json::Object sampling_;       // fields of set_sampling, set_thinking and set_adapter
  int64_t turns_ = 0;
  bool is_full_ = false;            // the socket has more than its client reads
  bool queue_unsaid_ = false;       // a queue_update is still to be sent
  std::shared_ptr<TurnSink> turn_;  // null: none is under way
};

}  // namespace hearth::server
