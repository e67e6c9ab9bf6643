// The messages of a conversation as a tree (spec web 3.3): an answer made again, or a message edited, is a second child
// of one parent; the head says which leaf is shown. Values only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth::server {

struct ChatMessage {
  std::string id, parent;  // parent "": a first one
  std::string role;        // user or assistant
  std::string content;
  // of answers
  std::string thinking{}, model{}, finish_reason{};  // finish_reason: stop, length, aborted, error
  json::Value usage{};
};

class ChatMessages {
 public:
  static constexpr size_t kBytesMax = size_t{4} << 20;  // as history writes them

  explicit ChatMessages(size_t messages_max) : messages_max_(messages_max) {}

  std::string next_id() { return "m" + std::to_string(++last_id_); }  // not one that was given out before
  // Becomes the head.
  void add(ChatMessage message);
  const ChatMessage* find(std::string_view id) const;
  // Throws Error{busy} when a message of so many bytes finds no room, with its answer.
  void require_room(size_t bytes) const;

  const std::string& head() const { return head_; }  // "": nothing was said yet
  size_t size() const { return messages_.size(); }
  size_t bytes() const { return bytes_; }

  json::Array history() const;  // all of them, as they came
  // From the first one to `leaf`, as a Generation has them. Answers that failed or were stopped without a word are
  // left out.
  json::Array path(std::string_view leaf, const std::string& system) const;

 private:
  size_t messages_max_;
  std::vector<ChatMessage> messages_;
  std::map<std::string, size_t, std::less<>> by_id_;
  std::string head_;
  int64_t last_id_ = 0;
  size_t bytes_ = 0;
};

}  // namespace hearth::server
