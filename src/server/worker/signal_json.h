// The answer to /signal, as far as the worker makes it.
#pragma once
#include <span>

#include "base/json.h"
#include "text/tokenizer.h"

namespace hearth::server {

// {bins: [{low, high, count, mass}], entropy, top: [{token, id, bytes, logprob}]} of decode::signal_of(logits), and
// throws as it does.
json::Object signal_json(std::span<const float> logits, const text::Tokenizer& tokenizer);

}  // namespace hearth::server
