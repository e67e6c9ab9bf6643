// The chat loop of `hearth run`: lines in, answers out, `/` commands. Knows no terminal and no engine.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/json.h"
#include "cli/chat_backend.h"
#include "cli/line_source.h"
#include "hub/paths.h"

namespace hearth::cli {

struct ChatOutput {
  std::function<void(std::string_view)> answer;  // of the model, as it comes
  std::function<void(std::string_view)> note;    // one line of ours, without its end
  std::function<void(std::string_view)> error;   // the same, of what failed
};

class Chat {
 public:
  // All must outlive the chat. `env` serves "~" in file names.
  Chat(ChatBackend& backend, LineSource& lines, Interrupt& interrupt, ChatOutput output, hub::Env env);

  // Until /bye or the end of input. Ctrl-C during an answer stops it and keeps the chat; what was said so far stays in
  // it. A failed answer (Error) is told and leaves the chat as it was before the question. Returns true when no answer
  // and no command failed.
  bool run();

  // One question, its answer to output.answer. Returns false when it failed (told as an error).
  bool ask(const std::string& text);

  const std::vector<ChatMessage>& messages() const { return messages_; }

  // As /system TEXT.
  void set_system(const std::string& text) { system(text); }

 private:
  bool command(const std::string& line);  // false: the chat ends
  void failure(std::string_view sentence);
  void help();
  void system(const std::string& text);
  void set(const std::string& words);
  void save(const std::string& file);
  void load(const std::string& file);
  void stats();

  ChatBackend& backend_;
  LineSource& lines_;
  Interrupt& interrupt_;
  ChatOutput output_;
  hub::Env env_;
  std::vector<ChatMessage> messages_;
  std::optional<ChatReply> last_;
  bool failed_ = false;
};

// A conversation file: {"schema_version": 1, "model": ..., "messages": [{"role", "content"}]}.
// [{role, content}, ...]
json::Array messages_json(std::span<const ChatMessage> messages);
std::string dump_conversation(const std::string& model, const std::vector<ChatMessage>& messages);
// Throws Error{corrupt_file} naming `what` and the field. Roles: system (first only), then user and assistant in turn.
std::vector<ChatMessage> parse_conversation(std::string_view text, std::string_view what);

// A /-command's line split at its first blank: {"set", "top-p 0.9"}.
std::pair<std::string, std::string> split_command(std::string_view line);

}  // namespace hearth::cli
