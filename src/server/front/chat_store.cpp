#include "server/front/chat_store.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "server/front/chat_socket.h"

namespace hearth::server {

ChatStore::ChatStore(const Clock& clock, ChatLimits limits) : clock_(clock), limits_(limits) {}

bool ChatStore::add_socket(const std::string& holder, const std::weak_ptr<ChatSocket>& socket) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sockets_, [](const auto& one) { return one.second.expired(); });
  if (sockets_.count(holder) >= limits_.sockets_max) return false;
  sockets_.emplace(holder, socket);
  return true;
}

void ChatStore::revoke(const std::function<bool(const std::string& holder)>& whose) {
  std::vector<std::shared_ptr<ChatSocket>> found;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [holder, weak] : sockets_)
      if (whose(holder))
        if (auto socket = weak.lock()) found.push_back(std::move(socket));
  }
  for (const auto& socket : found) socket->revoke();
}

// With the lock; what is dropped is let go of without it.
void ChatStore::drop(std::list<Kept>::iterator kept, std::list<Kept>& into) {
  bytes_ -= kept->bytes;
  into.splice(into.end(), kept_, kept);
}

void ChatStore::drop_expired(std::list<Kept>& into) {
  while (!kept_.empty() && clock_.monotonic() - kept_.back().left > limits_.ttl) {
    chats_.erase(kept_.back().key);
    drop(std::prev(kept_.end()), into);
  }
}

void ChatStore::drop_same(const Key& key, std::list<Kept>& into) {
  const auto same = std::ranges::find(kept_, key, &Kept::key);
  if (same != kept_.end()) drop(same, into);
}

void ChatStore::add(const std::string& holder, const std::string& id, const std::shared_ptr<Chat>& chat) {
  std::list<Kept> dropped;
  const std::lock_guard lock(mutex_);
  std::erase_if(chats_, [](const auto& one) { return one.second.expired(); });
  drop_same({holder, id}, dropped);
  chats_[{holder, id}] = chat;
}

void ChatStore::keep(const std::string& holder, const std::string& id, const std::shared_ptr<Chat>& chat,
                     int64_t bytes) {
  std::list<Kept> dropped;
  const std::lock_guard lock(mutex_);
  drop_expired(dropped);
  drop_same({holder, id}, dropped);
  if (bytes > limits_.bytes_max) return;
  while (bytes_ + bytes > limits_.bytes_max) drop(std::prev(kept_.end()), dropped);
  bytes_ += bytes;
  kept_.push_front({{holder, id}, chat, bytes, clock_.monotonic()});
}

std::shared_ptr<Chat> ChatStore::find(const std::string& holder, const std::string& id) {
  std::list<Kept> dropped;
  const std::lock_guard lock(mutex_);
  drop_expired(dropped);
  const auto found = chats_.find({holder, id});
  return found == chats_.end() ? nullptr : found->second.lock();
}

}  // namespace hearth::server
