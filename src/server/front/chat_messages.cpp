#include "server/front/chat_messages.h"

#include "base/limit_error.h"
#include "server/limits.h"

namespace hearth::server {
namespace {

json::Object document_of(const ChatMessage& message) {
  json::Object o;
  o["id"] = message.id;
  o["parent_id"] = message.parent.empty() ? json::Value() : json::Value(message.parent);
  o["role"] = message.role;
  o["content"] = message.content;
  if (message.role != "assistant") return o;
  if (!message.thinking.empty()) o["thinking"] = message.thinking;
  o["model"] = message.model;
  o["finish_reason"] = message.finish_reason;
  o["usage"] = message.usage;
  return o;
}

bool is_silent(const ChatMessage& m) {
  return m.content.empty() && (m.finish_reason == "aborted" || m.finish_reason == "error");
}

}  // namespace

void ChatMessages::add(ChatMessage message) {
  const size_t bytes = json::dump(document_of(message)).size();
  std::string id = message.id;
  const auto at = by_id_.emplace(id, messages_.size()).first;
  try {
    messages_.push_back(std::move(message));
  } catch (...) {
    by_id_.erase(at);
    throw;
  }
  head_ = std::move(id);
  bytes_ += bytes;
}

const ChatMessage* ChatMessages::find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &messages_[found->second];
}

void ChatMessages::require_room(size_t bytes) const {
  if (messages_.size() + 2 > messages_max_)
    throw LimitError(std::string(row_of(LimitId::messages).name),
                     fmt::format("the conversation has {} messages, it may have {}; begin a new one", messages_.size(),
                                 messages_max_),
                     ErrorKind::busy);
  if (bytes_ + bytes > kBytesMax)
    fail(ErrorKind::busy, "the conversation has {} bytes, with this message it would exceed {}; begin a new one",
         bytes_, kBytesMax);
}

json::Array ChatMessages::history() const {
  json::Array list;
  for (const ChatMessage& message : messages_) list.push_back(document_of(message));
  return list;
}

json::Array ChatMessages::path(std::string_view leaf, const std::string& system) const {
  std::vector<const ChatMessage*> up;
  for (const ChatMessage* m = find(leaf); m; m = find(m->parent)) up.push_back(m);
  json::Array list;
  const auto say = [&](std::string_view role, const std::string& content, const std::string& thinking) {
    json::Object o;
    o["role"] = role;
    o["content"] = content;
    if (!thinking.empty()) o["reasoning_content"] = thinking;
    list.push_back(std::move(o));
  };
  if (!system.empty()) say("system", system, "");
  for (auto m = up.rbegin(); m != up.rend(); ++m)
    if (!is_silent(**m)) say((*m)->role, (*m)->content, (*m)->thinking);
  return list;
}

}  // namespace hearth::server
