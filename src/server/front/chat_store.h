// The WebSockets that are open, by whose they are, and the conversations that a client may come back to.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"

namespace hearth::server {

class Chat;
class ChatSocket;

struct ChatLimits {
  size_t sockets_max = 8;                    // of one credential (spec web 4)
  int64_t bytes_max = int64_t{32} << 20;     // of conversations without a socket; those left longest ago go
  std::chrono::milliseconds ttl{3'600'000};  // since it was left
};

// Thread-safe. `holder`: Auth::holder; a conversation is found by the credential that began it alone.
class ChatStore {
 public:
  explicit ChatStore(const Clock& clock, ChatLimits limits = {});

  // False: the credential has as many sockets as it may have.
  bool add_socket(const std::string& holder, const std::weak_ptr<ChatSocket>& socket);
  void revoke(const std::function<bool(const std::string& holder)>& whose);

  // It is at a socket: not kept here any more, and found as long as somebody holds it.
  void add(const std::string& holder, const std::string& id, const std::shared_ptr<Chat>& chat);
  // Its socket has gone: it is held here. One that is larger than all may be is not.
  void keep(const std::string& holder, const std::string& id, const std::shared_ptr<Chat>& chat, int64_t bytes);
  // Null: there is none.
  std::shared_ptr<Chat> find(const std::string& holder, const std::string& id);

  const ChatLimits& limits() const { return limits_; }

 private:
  using Key = std::pair<std::string, std::string>;  // holder, id
  struct Kept {
    Key key;
    std::shared_ptr<Chat> chat;
    int64_t bytes = 0;
    std::chrono::nanoseconds left{};
  };

  void drop(std::list<Kept>::iterator kept, std::list<Kept>& into);
  void drop_expired(std::list<Kept>& into);
  void drop_same(const Key& key, std::list<Kept>& into);

  const Clock& clock_;
  const ChatLimits limits_;
  std::mutex mutex_;
  std::multimap<std::string, std::weak_ptr<ChatSocket>> sockets_;
  std::map<Key, std::weak_ptr<Chat>> chats_;
  std::list<Kept> kept_;  // the one left last first
  int64_t bytes_ = 0;
};

}  // namespace hearth::server
