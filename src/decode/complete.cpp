#include "decode/complete.h"

#include <algorithm>

#include "text/detokenizer.h"
#include "text/stop.h"

namespace hearth::decode {

std::vector<int32_t> end_ids(const model::ModelSpec& spec, const text::Tokenizer& tokenizer) {
  std::vector<int32_t> ids = spec.end_ids;
  ids.insert(ids.end(), tokenizer.end_ids().begin(), tokenizer.end_ids().end());
  // Files of chat models often name only the base model's end; these close a turn in the families that spell them.
  for (const std::string_view piece : {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|endoftext|>"})
    if (const auto id = tokenizer.id_of(piece); id && tokenizer.is_special(*id)) ids.push_back(*id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase_if(ids, [&](int32_t id) { return id < 0 || id >= spec.V; });
  return ids;
}

Completion complete(Engine& engine, const text::Tokenizer& tokenizer, Sequence& sequence,
                    std::span<const int32_t> prompt, GenerateOptions options, const std::vector<std::string>& stops,
                    const std::function<void(std::string_view)>& on_text) {
  text::Detokenizer detokenizer;
  text::StopMatcher matcher(stops);
  Completion completion;
  const auto out = [&](const std::string& piece) {
    if (piece.empty()) return;
    completion.text += piece;
    on_text(piece);
  };
  // Padded heads have ids that no piece stands for.
  const auto has_text = [&](int32_t id) { return !tokenizer.is_special(id) && id < tokenizer.vocab_size(); };
  bool first = std::none_of(prompt.begin(), prompt.end(), has_text);
  completion.generated = generate(engine, sequence, prompt, options, [&](int32_t id) {
    if (!has_text(id)) return true;
    const std::string piece = detokenizer.push(tokenizer.piece_bytes(id, first));
    first = false;
    const text::StopMatcher::Result match = matcher.push(piece);
    out(match.emit);
    return !match.stopped;
  });
  if (!matcher.stopped()) {
    const text::StopMatcher::Result tail = matcher.push(detokenizer.finish());
    out(tail.emit);
    out(matcher.finish());
  }
  return completion;
}

}  // namespace hearth::decode
