// OpenAI's raw completions: one prompt, continued as it is.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "server/dialects/answer.h"
#include "server/http/fields.h"

namespace hearth::server::openai {

std::span<const Field> completion_fields();

struct CompletionRequest {
  std::string model, keep_alive;
  Generation generation;
  bool stream = false, include_usage = false;
};

// Throws RequestError naming the field.
CompletionRequest parse_completion(const json::Object& body);

std::unique_ptr<AnswerWriter> completion_writer(const CompletionRequest& request);

}  // namespace hearth::server::openai
