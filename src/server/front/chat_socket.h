// One WebSocket of /ws/chat: frames come in, and go to the conversation that it is at.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/front/chat.h"
#include "server/http/route.h"

namespace hearth::server {

// Thread-safe. Held by its connection's handlers, until that has ended.
class ChatSocket : public std::enable_shared_from_this<ChatSocket> {
 public:
  // Codes of closes that are its own (spec web 3.1).
  static constexpr int kRevoked = 4409, kTooBig = 4413, kBusy = 1013;

  // Answers the call, which asks for a WebSocket, with 101. `holder`: whose it is (Auth::holder).
  static void accept(Services& services, const Call& call, std::string holder);

  void revoke();  // its credential was taken back: its turn ends, and it closes

 private:
  ChatSocket(Services& services, std::string owner, std::string holder);

  void begin();
  void close(int code, std::string_view reason);
  void on_message(std::string_view text, bool is_text);
  void on_frame(const frames::ClientFrame& frame);
  void on_closed();
  void move_to(const std::shared_ptr<Chat>& chat);  // from the conversation that it was at
  void leave(const std::shared_ptr<Chat>& chat);

  std::shared_ptr<Chat> chat();
  void on_limit(net::WebSocketLimit limit);

  Services& services_;
  const std::string owner_, holder_;
  std::shared_ptr<net::WebSocket> socket_;  // set before anything is heard
  std::mutex mutex_;
  std::shared_ptr<Chat> chat_;
  bool closing_ = false;  // nothing is heard any more
};

}  // namespace hearth::server
