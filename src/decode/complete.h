// Ids in, text out: generation with the incremental detokenizer and stop strings.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/generate.h"
#include "text/tokenizer.h"

namespace hearth::decode {

struct Completion {
  std::string text;  // valid UTF-8; without the stop string and all behind it
  Generated generated;
};

// The text is what the answer adds to the prompt's: decode(prompt + answer) begins with decode(prompt), and this is the
// rest, but that a character which the prompt leaves open is not finished. So a piece's leading space counts, unless
// the prompt has no text at all. on_text gets pieces of it as they are final, always valid UTF-8; joined they are
// Completion::text.
// Throws as generate() and StopMatcher do.
Completion complete(Engine& engine, const text::Tokenizer& tokenizer, Sequence& sequence,
                    std::span<const int32_t> prompt, GenerateOptions options, const std::vector<std::string>& stops,
                    const std::function<void(std::string_view)>& on_text);

// Union of the end ids of config, generation_config and tokenizer (spec models 32), and the end-of-turn tokens that
// chat families spell out; ascending.
std::vector<int32_t> end_ids(const model::ModelSpec& spec, const text::Tokenizer& tokenizer);

}  // namespace hearth::decode
