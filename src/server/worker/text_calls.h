// What a worker answers with its tokenizer and template alone.
#pragma once
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/json.h"
#include "server/generation.h"
#include "server/worker/call_session.h"
#include "server/worker/prompt.h"
#include "server/worker/worker.h"
#include "text/tokenizer.h"

namespace hearth::server {

// The reply to a tokenize frame with `content`, or to a detokenize frame. Throws Error{invalid_argument}.
json::Object text_call(FrameKind kind, const json::Value& body, const text::Tokenizer& tokenizer);

// The same of a conversation too, and the reply to a render frame.
json::Object prompt_call(FrameKind kind, const json::Value& body, const PromptModel& model);

// Of a worker that has read no weights.
CallAnswers text_calls(WorkerModel model);

// Ids as a tokenize reply has them: numbers, or with_pieces {id, piece}.
json::Array token_list(const json::Value& body, std::span<const int32_t> ids, const text::Tokenizer& tokenizer);

// The error that ends a whole request.
Event error_event(uint64_t id, const Error& error);

}  // namespace hearth::server
