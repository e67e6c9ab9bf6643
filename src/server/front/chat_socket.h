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
  static constexpr int kNotLetIn = 4401, kRevoked = 4409, kTooBig = 4413, kBusy = 1013;

  // Answers the call, which asks for a WebSocket, with 101. `holder`: whose it is (Auth::holder); "": its first frame
  // has to be an auth frame with a ticket, within kTicketTime.
  static constexpr net::Milliseconds kTicketTime{10'000};
  static void accept(Services& services, const Call& call, std::string holder);

  void revoke();  // its credential was taken back: its turn ends, and it closes

 private:
  ChatSocket(Services& services, std::string owner, std::string holder);

  void enter(const json::Value& frame_id);  // its holder is known: the first conversation begins
  bool take_ticket(const frames::ClientFrame& frame);
  void close(int code, std::string_view reason);
  void on_message(std::string_view text, bool is_text);
  void on_frame(const frames::ClientFrame& frame);
  void hear_stranger(std::string_view text, bool is_text);
  void on_closed();
  void on_limit(net::WebSocketLimit limit);
  void move_to(const std::shared_ptr<Chat>& chat);  // from the conversation that it was at
  void leave(const std::shared_ptr<Chat>& chat);

  std::shared_ptr<Chat> chat();

  Services& services_;
  std::string owner_, holder_;              // set once, before chat_ is
  std::shared_ptr<net::WebSocket> socket_;  // set before anything is heard
  std::mutex mutex_;
  std::shared_ptr<Chat> chat_;
  bool closing_ = false;  // nothing is heard any more
};

}  // namespace hearth::server
