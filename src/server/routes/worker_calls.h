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

}  // namespace hearth::server
