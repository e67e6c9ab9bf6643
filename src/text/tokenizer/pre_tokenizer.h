// Text to words: the steps of a pre-tokenizer, compiled.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/matcher.h"
#include "text/tokenizer/tables.h"

namespace hearth::text {

struct Word {
  std::string_view text;
  bool at_start;  // begins where the whole text begins
};

// Immutable; any thread.
class PreTokenizer {
 public:
  // `keep_last_bytes`: a byte-level step that comes last splits, but leaves the bytes as they are.
  PreTokenizer(const std::vector<PreTokenizerStep>& steps, bool keep_last_bytes, std::string_view what);
  ~PreTokenizer();

  // Replaces `words` by what the steps make of it. Texts that are rewritten live in `arena`.
  void split(std::vector<Word>& words, std::deque<std::string>& arena) const;

 private:
  struct Stage;
  std::vector<Stage> stages_;
};

}  // namespace hearth::text
