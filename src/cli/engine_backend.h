// The engine behind the chat loop: keeps one sequence, so a turn evaluates only what is new.
#pragma once
#include "cli/chat_backend.h"
#include "cli/engine_flags.h"
#include "decode/complete.h"

namespace hearth::cli {

class EngineBackend final : public ChatBackend {
 public:
  EngineBackend(LoadedModel& loaded, decode::GenerateOptions options, std::vector<std::string> stops);
  ~EngineBackend() override;

  std::string model_name() const override { return loaded_.found.name; }
  ChatReply reply(std::span<const ChatMessage> messages, const std::function<void(std::string_view)>& on_text,
                  const std::atomic<bool>& cancel) override;
  std::vector<ChatSetting> settings() const override;
  void set(const std::string& name, const std::string& value) override;

 private:
  std::vector<int32_t> prompt_of(std::span<const ChatMessage> messages) const;

  LoadedModel& loaded_;
  decode::GenerateOptions options_;
  std::vector<std::string> stops_;
  decode::Sequence sequence_;
};

}  // namespace hearth::cli
