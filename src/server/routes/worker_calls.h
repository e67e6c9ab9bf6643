// Requests that a model's worker answers with one document: embeddings, tokenize, detokenize, apply-template,
// count_tokens.
#pragma once
#include <functional>

#include "server/http/route.h"
#include "server/wire.h"

namespace hearth::server {

// Finds the model, loads it where its weights are wanted (embed), sends the frame, and answers with what shape() makes
// of the reply. A client that goes away cancels its call.
void ask_worker(Services& services, Call call, const std::string& model, FrameKind kind, json::Object body,
                std::function<json::Object(const json::Value& reply)> shape);

// Figures of the model's worker; null where it is not loaded, or has just ended. A look loads nothing and keeps nothing
// loaded. `then` comes on the caller's thread or on the worker's link, and must not block.
void look_at_worker(Services& services, const std::string& model, std::function<void(const json::Value& figures)> then);

// Those of the default model.
void look_at_default(Services& services, std::function<void(const json::Value& figures)> then);

}  // namespace hearth::server
