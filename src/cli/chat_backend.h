// What a chat needs of a model. The engine implements it for `hearth run`; tests script it.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/generate.h"

namespace hearth::cli {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct ChatReply {
  std::string text;           // what on_text got, joined
  std::string finish_reason;  // stop, length, cancelled
  bool context_full = false;  // the context, not max-tokens, ended it
  decode::GenerateStats stats;
};

struct ChatSetting {
  std::string name, value, help;
};

class ChatBackend {
 public:
  virtual ~ChatBackend() = default;

  virtual std::string model_name() const = 0;

  // Answers the last message, which is the user's. on_text gets valid UTF-8 as it comes, on the calling thread. Ends
  // early with finish_reason "cancelled" soon after `cancel` becomes true. Throws Error: out_of_memory when the
  // messages exceed the context, invalid_argument when the template refuses them; the backend stays usable.
  virtual ChatReply reply(std::span<const ChatMessage> messages, const std::function<void(std::string_view)>& on_text,
                          const std::atomic<bool>& cancel) = 0;

  // What /set can change (temperature, top-p, seed, max-tokens, ...), with its present values.
  virtual std::vector<ChatSetting> settings() const = 0;

  // Throws Error{invalid_argument} naming the setting, the value and what is allowed; then nothing is changed.
  virtual void set(const std::string& name, const std::string& value) = 0;
};

}  // namespace hearth::cli
