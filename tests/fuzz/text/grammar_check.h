// What holds for every grammar that compiles, whoever wrote it.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/grammar/matcher.h"
#include "text/tokenizer.h"

namespace hearth::text {

// The bytes and a few longer pieces.
inline const std::shared_ptr<const VocabularyIndex>& fuzz_vocabulary() {
  static const auto vocabulary = [] {
    GgufTokenizer g;
    g.model = "llama";
    const auto add = [&](std::string piece, int32_t type) {
      g.tokens.push_back(std::move(piece));
      g.scores.push_back(0);
      g.types.push_back(type);
    };
    add("<unk>", 2);
    add("<s>", 3);
    add("</s>", 3);
    for (int b = 0; b < 256; ++b) add(fmt::format("<0x{:02X}>", b), 6);
    for (const char* piece :
         {"ab", "abc", "\",", "\":", "{\"", "\"}", "}]", "true", "00", "12", "aaaaaaaa", "((", "x\"y", "\xC3\xA9"})
      add(piece, 1);
    g.unk = 0;
    g.bos = 1;
    g.eos = 2;
    const Tokenizer tokenizer(tables_from_gguf(g, "fuzz"));
    return std::make_shared<const VocabularyIndex>(tokenizer, tokenizer.end_ids());
  }();
  return vocabulary;
}

// Follows the masks for a while, led by `bytes`: each says what accept() does, and there is always a way on or an end.
inline void check_grammar(const GrammarPtr& grammar, std::string_view bytes) {
  GrammarMatcher m(grammar, fuzz_vocabulary());
  std::vector<uint64_t> mask(fuzz_vocabulary()->words());
  for (size_t step = 0; step < 12; ++step) {
    m.mask(mask);
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < fuzz_vocabulary()->vocab_size(); ++id) {
      const bool allowed = mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1;
      GrammarMatcher trial = m;
      if (trial.accept(id) != allowed) __builtin_trap();
      if (allowed) ids.push_back(id);
    }
    if (ids.empty()) __builtin_trap();
    const auto lead = static_cast<uint8_t>(bytes.empty() ? step * 37 : bytes[step % bytes.size()]);
    m.accept(ids[(lead + step) % ids.size()]);
    if (m.ended()) return;
  }
}

template <class Make>
int fuzz_grammar(std::string_view source, const Make& make) {
  try {
    check_grammar(make(), source);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::invalid_argument) __builtin_trap();
  }
  return 0;
}

}  // namespace hearth::text
