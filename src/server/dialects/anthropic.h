// Anthropic's messages: a body to a Generation, events to blocks in a stream or a document (spec server 2.9, 3.2, 3.3).
#pragma once
#include <memory>
#include <span>
#include <string>

#include "server/dialects/answer.h"
#include "server/http/fields.h"

namespace hearth::server::anthropic {

std::span<const Field> conversation_fields();  // of messages and of count_tokens
std::span<const Field> answer_fields();        // of messages alone

struct MessagesRequest {
  std::string model, keep_alive;
  Generation generation;
  bool stream = false;
};

// Throws RequestError naming the field. What other servers do and this one does not (tools that run there, their blocks
// in the history) is left out, as are cache marks and the client's billing line.
MessagesRequest parse_messages(json::Object body);
// The same of a body that asks for no answer: its history may end anywhere.
MessagesRequest parse_count(json::Object body);

std::unique_ptr<AnswerWriter> messages_writer();

}  // namespace hearth::server::anthropic
